"""The commands: what each takes, asks and prints."""
