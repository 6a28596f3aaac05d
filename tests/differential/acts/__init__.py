"""What a sequence may do, by subject; each act yields requests and learns from the answers."""
