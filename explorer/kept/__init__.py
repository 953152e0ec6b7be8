"""What is kept between runs, and written: entries, fingerprints of the code, files whole or not at all."""
