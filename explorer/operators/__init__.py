"""The commands of operators: pool, metrics, hold, cost and risk."""
