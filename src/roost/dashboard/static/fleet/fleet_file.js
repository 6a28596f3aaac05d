/** The columns of the fleet as the server sends them: a head in JSON, then typed arrays of little-endian numbers. */

/**
 * @typedef {object} Place
 * @property {string} zone
 * @property {number[]} aggregates positions in the list of aggregates
 */
/**
 * @typedef {object} Fleet
 * @property {string} generation changes with the hosts and the classes
 * @property {number} position of the newest change in these columns
 * @property {number} hosts
 * @property {string[]} classes
 * @property {Uint16Array[]} shares by class: used share of capacity in thousandths; 65535: the host has none
 * @property {Uint16Array} instances
 * @property {Uint8Array} states bits
 * @property {Uint32Array} reported seconds since the epoch; 0: never
 * @property {Uint16Array | Uint32Array} place
 * @property {Place[]} places
 * @property {Uint16Array | Uint32Array} rack
 * @property {string[]} racks
 * @property {Uint16Array | Uint32Array} kind
 * @property {Record<string, number>[]} kinds
 * @property {{uuid: string, name: string}[]} aggregates
 */

export const DISABLED = 1;
export const DRAINING = 2;
export const DOWN = 4;
export const OVER = 8;
export const NONE = 65535;

const MAGIC = "RFS1";
const TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

/**
 * Decode a file of columns: its head, and typed arrays by name.
 * @param {ArrayBuffer} buffer
 * @returns {{head: any, hosts: number, columns: Record<string, any>}}
 */
export function decodeColumns(buffer) {
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== MAGIC || view.getUint32(4, true) !== 1)
    throw new Error("The columns of the fleet have an unknown format.");
  const hosts = view.getUint32(8, true);
  const headSize = view.getUint32(12, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, headSize)));
  /** @type {Record<string, any>} */
  const columns = {};
  let at = padded(16 + headSize);
  for (const { name, type } of head.columns) {
    const Type = TYPES[/** @type {keyof typeof TYPES} */ (type)];
    columns[name] = new Type(buffer, at, hosts);
    at = padded(at + hosts * Type.BYTES_PER_ELEMENT);
  }
  return { head, hosts, columns };
}

/** Decode the columns of the fleet. @param {ArrayBuffer} buffer @returns {Fleet} */
export function decodeFleet(buffer) {
  const { head, hosts, columns } = decodeColumns(buffer);
  return {
    generation: head.generation,
    position: head.position,
    hosts,
    classes: head.classes,
    shares: head.classes.map((/** @type {string} */ name) => columns[`share:${name}`]),
    instances: columns.instances,
    states: columns.state,
    reported: columns.reported_s,
    place: columns.place,
    places: head.places.map((/** @type {{zone: number, aggregates: number[]}} */ each) => ({
      zone: head.zones[each.zone],
      aggregates: each.aggregates,
    })),
    rack: columns.rack,
    racks: head.racks,
    kind: columns.kind,
    kinds: head.kinds.map((/** @type {number[]} */ each) =>
      Object.fromEntries(each.map((value, at) => [head.classes[at], value]).filter(([, value]) => value)),
    ),
    aggregates: head.aggregates,
  };
}

/** @param {number} size */
const padded = (size) => (size + 3) & ~3;

/**
 * Apply changes to the columns; return the changed hosts, or null if the columns must be loaded anew.
 * @param {Fleet} fleet
 * @param {{generation: string, position: number, reload?: boolean, hosts?: number[][]}} delta
 * @returns {number[] | null}
 */
export function applyDelta(fleet, delta) {
  if (delta.reload || delta.generation !== fleet.generation) return null;
  const width = fleet.classes.length;
  const changed = [];
  for (const row of delta.hosts ?? []) {
    const host = /** @type {number} */ (row[0]);
    if (!(host < fleet.hosts)) return null;
    for (let at = 0; at < width; at += 1) /** @type {Uint16Array} */ (fleet.shares[at])[host] = row[1 + at] ?? NONE;
    fleet.instances[host] = row[1 + width] ?? 0;
    fleet.states[host] = row[2 + width] ?? 0;
    changed.push(host);
  }
  fleet.position = Math.max(fleet.position, delta.position);
  return changed;
}
