/** What people can do with an instance: which acts its status allows, and what each does. */

/**
 * @typedef {object} Act
 * @property {string} kind the last part of its route
 * @property {string} label
 * @property {string} about one sentence for the dialog
 * @property {string[]} from the statuses that allow it
 * @property {boolean} [needsHost] whether the instance must be on a host
 * @property {boolean} [needsDown] whether this host must be down
 * @property {"host" | "flavor" | "image" | "delete"} [field] what the dialog asks for
 * @property {boolean} [isDanger]
 */

const ON_HOST = ["ACTIVE", "SHUTOFF"];
const ALL = ["BUILD", "ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR"];

/** @type {Act[]} */
export const ACTS = [
  { kind: "start", label: "Start", about: "It starts on its host.", from: ["SHUTOFF"] },
  { kind: "stop", label: "Stop", about: "It stops, and keeps its resources on the host.", from: ["ACTIVE"] },
  { kind: "reboot", label: "Reboot", about: "It stops and starts again on its host.", from: ["ACTIVE"] },
  {
    kind: "confirm",
    label: "Confirm the move",
    about: "It stays where it is, and the source releases its resources.",
    from: ["VERIFY_RESIZE"],
  },
  {
    kind: "revert",
    label: "Revert the move",
    about: "It returns to its source with its old resources.",
    from: ["VERIFY_RESIZE"],
  },
  {
    kind: "live-migrate",
    label: "Live-migrate",
    about: "It moves to another host without a stop.",
    from: ["ACTIVE"],
    field: "host",
  },
  {
    kind: "migrate",
    label: "Migrate",
    about: "It stops, moves to another host, and starts there if it ran.",
    from: ON_HOST,
    field: "host",
  },
  {
    kind: "resize",
    label: "Resize",
    about: "It gets another flavor, on its host or on another one, and then waits for a confirmation.",
    from: ON_HOST,
    field: "flavor",
  },
  {
    kind: "rebuild",
    label: "Rebuild",
    about: "Its disk is written anew from an image. All data on this disk is lost.",
    from: [...ON_HOST, "ERROR"],
    needsHost: true,
    field: "image",
    isDanger: true,
  },
  {
    kind: "evacuate",
    label: "Evacuate",
    about: "It is built again on another host, because its host is down.",
    from: [...ON_HOST, "ERROR"],
    needsHost: true,
    needsDown: true,
    field: "host",
  },
  { kind: "shelve", label: "Shelve", about: "Its disk is saved, and it stops.", from: ON_HOST },
  { kind: "offload", label: "Offload", about: "It leaves its host; its saved disk stays.", from: ["SHELVED"] },
  {
    kind: "unshelve",
    label: "Unshelve",
    about: "It starts again from its saved disk.",
    from: ["SHELVED", "SHELVED_OFFLOADED"],
  },
  {
    kind: "reset",
    label: "Reset",
    about: "It gets the status that its host reports.",
    from: ["ERROR"],
    needsHost: true,
  },
  {
    kind: "delete",
    label: "Delete",
    about: "It is removed from its host with all its data, and its resources are released.",
    from: ALL,
    field: "delete",
    isDanger: true,
  },
];

/**
 * Return the acts that the status of an instance and the roles of the client allow.
 * @param {{status: string | null, host: string, operation: string | null, task: string}} instance
 * @param {(policy: string) => boolean} may
 * @param {boolean} isDown whether its host is known to be down
 */
export function possibleActs(instance, may, isDown) {
  return ACTS.filter(
    (act) =>
      may(`instances:${act.kind}`) &&
      (instance.status === null ? act.kind === "delete" : act.from.includes(instance.status)) &&
      (!instance.operation || (act.kind === "delete" && instance.task !== "deleting")) &&
      (!act.needsHost || instance.host) &&
      (!act.needsDown || isDown),
  );
}

/** The tone of a status: a class of badges. @param {string | null} status */
export function toneOf(status) {
  if (status === "ACTIVE") return "granted";
  if (status === "ERROR") return "refused";
  return status === "BUILD" || status === "VERIFY_RESIZE" ? "accent" : "";
}

/** A status in words. @param {string | null} status */
export const statusText = (status) => (status === null ? "claim" : status.toLowerCase().replaceAll("_", " "));
