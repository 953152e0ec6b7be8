"""How commands end, are interrupted, and print; what comes from the web."""
