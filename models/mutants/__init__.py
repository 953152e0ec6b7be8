"""What is taken away from a release again: its fixes, and the known bugs."""
