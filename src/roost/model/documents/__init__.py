"""Documents that the commands read and write: fleets, requests, answers."""
