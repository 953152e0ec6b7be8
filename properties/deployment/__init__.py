"""What a hold costs a deployment, and what it is worth."""
