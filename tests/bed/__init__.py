"""A real small OpenStack on one machine, with Roost in the place of Placement, of nova-scheduler, or of both.

``peers``: the programs of OpenStack, in an environment of their own.
``combinations``: the Placement and the schedulers of a cloud.
``processes``: processes that are found again by another process.
``conf_files``: the configuration files of all services.
``catalog``: users, services and endpoints in Keystone.
``roost_servers``: Roost's processes in the cloud.
``cloud``: start and end of the whole cloud.
``cloud_api``: the APIs of the cloud, as its administrator.
``records``: observations of an operation, and of a whole cloud.
``session``: servers, their statuses and their holdings.
``operations``: all operations of the scenario.
``scenario``: runs the operations one after the other.
``loads``: the loads of hosts before a choice, and the reason of different choices.
``compare``: the differences between two clouds.
``tables``: the results as text.
``rounds``: twice as many boots at once as there is room for.
``sharing``: several schedulers share the queue.
``sharing_report``: what became of servers, claims and groups.
``bed_run``: all of this, one cloud after the other.
"""
