"""Compatibility with existing deployments: Nova's classes over Roost's rules, configuration files, and imports.

The counterpart of a module of Nova has the same path: ``nova.scheduler.filters`` is ``roost.compat.scheduler.filters``.
``docs/compat.md`` lists the supported classes.

Entrance and adapters:

``adapter``: the entrance; imports the other modules on first use.
``adapted_rules``: rules that run filters and weighers of plug-ins.
``host_rows``: rows of the columns, with the attributes of HostState.
``aliases``: Nova's module names without an installed Nova.
``installed_nova``: an installed Nova's objects, with look-ups in the columns.
``plugin_log``: the log of plug-ins.
``numa``: NUMA topologies under Nova's names.

Counterparts of Nova:

``scheduler``: filters, weighers, host states and the host manager.
``objects``: requests, instances, aggregates and look-ups.
``filters``: the filter handler.
``weights``: the weight handler.
``api``: validators of extra specs.
``compute``: provider trees, under Nova's module name.
``virt``: NUMA topologies and their fit on a host, under Nova's module name.
``icehouse``: schedulers of the first releases.
``conf``: CONF.
``config_view``: Roost's settings as CONF.
``context``: the caller of a request.
``exception``: Nova's errors.
``i18n``: messages without translation.
``servicegroup``: liveness of services.

Stand-ins for libraries of plug-ins, for machines without them:

``netaddr``: addresses and networks.
``oslo_config``: options.
``oslo_log``: loggers.
``oslo_serialization``: JSON.
``oslo_utils``: texts, times and versions.

Configuration and data:

``ini``: INI files of OpenStack services.
``nova_conf``: an existing ``nova.conf``.
``placement_conf``: an existing ``placement.conf``.
``upstream``: the import of another Placement's data.
"""
