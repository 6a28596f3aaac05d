"""Documents of commands: fleets, requests, answers."""
