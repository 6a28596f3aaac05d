"""Require hosts with the flavor's security mode for TPM secrets."""

from roost.scheduler.query.flavor_devices import tpm_version
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits, trait_words

_MODES = ("user", "host", "deployment")


def tpm_secret_security_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_SECURITY_TPM_SECRET_SECURITY_<MODE>`` for an instance with a TPM; the default is ``user``.

    Source:
        nova/scheduler/request_filter.py, tpm_secret_security_filter.
    """
    if tpm_version(context.request) is None:
        return NOTHING
    mode = context.request.flavor.extra_specs.get("hw:tpm_secret_security", "user")
    if mode not in _MODES:
        return Effect(refusal=f"TPM secret security {mode!r} is not supported.")
    return require_root_traits(f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{trait_words(mode)}")
