"""How long a hold must be: terms, answers, theorem."""
