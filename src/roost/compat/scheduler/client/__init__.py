"""What Nova has in ``nova.scheduler.client``: the way of services to Placement."""
