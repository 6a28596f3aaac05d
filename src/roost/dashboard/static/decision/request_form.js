/** The fields of a request, and the body that they make. */

/**
 * @typedef {object} Fields
 * @property {string} flavor name of a stored flavor; empty: the amounts below
 * @property {string} vcpus
 * @property {string} memory in MiB
 * @property {string} disk in GiB
 * @property {string} specs lines of KEY=VALUE
 * @property {string} image
 * @property {string} zone
 * @property {string} group
 * @property {string} hints lines of KEY=VALUE
 * @property {string} count
 * @property {string} hosts comma-separated
 */

/** @type {Fields} */
export const EMPTY = {
  flavor: "",
  vcpus: "2",
  memory: "4096",
  disk: "20",
  specs: "",
  image: "",
  zone: "",
  group: "",
  hints: "",
  count: "1",
  hosts: "",
};

/**
 * Return the body of a request.
 * @param {Fields} fields
 * @throws {Error} a field is invalid
 */
export function bodyOf(fields) {
  /** @type {Record<string, any>} */
  const body = { flavor: fields.flavor || customFlavor(fields) };
  const count = wholeNumber(fields.count, "Count");
  if (count < 1) throw new Error("Count must be at least 1.");
  if (count !== 1) body.count = count;
  if (fields.image) body.image = fields.image;
  if (fields.zone) body.availability_zone = fields.zone;
  if (fields.group) body.group = fields.group;
  const hints = pairsOf(fields.hints, "Hints");
  if (Object.keys(hints).length) body.hints = hints;
  const hosts = fields.hosts
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  if (hosts.length) body.force_hosts = hosts;
  return body;
}

/** @param {Fields} fields */
function customFlavor(fields) {
  return {
    name: "custom",
    vcpus: wholeNumber(fields.vcpus, "VCPU"),
    memory_mb: wholeNumber(fields.memory, "Memory"),
    root_gb: wholeNumber(fields.disk, "Disk"),
    extra_specs: pairsOf(fields.specs, "Extra specs"),
  };
}

/** @param {string} text @param {string} name */
function wholeNumber(text, name) {
  if (!/^\d+$/.test(text.trim())) throw new Error(`${name} must be a whole number.`);
  return Number(text);
}

/** Lines of KEY=VALUE as an object. @param {string} text @param {string} name */
export function pairsOf(text, name) {
  /** @type {Record<string, string>} */
  const pairs = {};
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`${name}: write each line as KEY=VALUE.`);
    pairs[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return pairs;
}

/** Return whether fields can show a body; otherwise only its document can. @param {any} body */
export function isSimple(body) {
  const known = new Set([
    "flavor",
    "count",
    "image",
    "availability_zone",
    "group",
    "hints",
    "force_hosts",
    "project_id",
    "user_id",
  ]);
  return (
    Object.entries(body).every(([name, value]) => known.has(name) || isNothing(value)) &&
    (body.image === null || body.image === undefined || typeof body.image === "string")
  );
}

/** @param {unknown} value */
function isNothing(value) {
  return (
    value === null ||
    value === false ||
    value === "" ||
    (Array.isArray(value) && !value.length) ||
    (typeof value === "object" && !Object.keys(/** @type {object} */ (value)).length)
  );
}

/** Return the fields for a body. @param {any} body @returns {Fields} */
export function fieldsOf(body) {
  const lines = (/** @type {Record<string, unknown>} */ pairs) =>
    Object.entries(pairs ?? {})
      .map(([name, value]) => `${name}=${[value].flat().join(",")}`)
      .join("\n");
  const flavor = typeof body.flavor === "string" ? {} : body.flavor;
  return {
    ...EMPTY,
    flavor: typeof body.flavor === "string" ? body.flavor : "",
    vcpus: String(flavor.vcpus ?? EMPTY.vcpus),
    memory: String(flavor.memory_mb ?? EMPTY.memory),
    disk: String((flavor.root_gb ?? 0) + (flavor.ephemeral_gb ?? 0)),
    specs: lines(flavor.extra_specs),
    image: body.image ?? "",
    zone: body.availability_zone ?? "",
    group: body.group ?? "",
    hints: lines(body.hints),
    count: String(body.count ?? 1),
    hosts: (body.force_hosts ?? []).join(", "),
  };
}
