/** Where each host stands on the map. A host keeps its place: the order is by name, never by load. */

/** @typedef {{name: string, hosts: Int32Array | number[]}} Block a rack or another small group */
/** @typedef {{name: string, blocks: Block[]}} Group a zone or another large group */
/**
 * @typedef {object} Area a group on the map; lengths in device pixels, columns and rows in cells
 * @property {string} name
 * @property {number} left
 * @property {number} top of the cells; the label is above
 * @property {number} columns
 * @property {number} rows
 * @property {number} room width for the label
 * @property {Int32Array} at host by cell, or -1
 * @property {{name: string, column: number, row: number, columns: number, rows: number}[]} blocks
 */
/**
 * @typedef {object} Layout
 * @property {number} pitch device pixels of a cell
 * @property {number} width device pixels
 * @property {number} height device pixels
 * @property {Area[]} areas
 * @property {Int32Array} areaOf by host; -1: not on the map
 * @property {Int32Array} cellOf by host
 */

const PITCH_MAX = 26;
const PITCH_MIN = 2;
const COLUMNS_MAX = 5;
const GAP = 14;
const PADDING = 14;
const LABEL = 20;

/** Columns and rows of a block. @param {number} count */
export function shapeOf(count) {
  const columns = Math.max(1, Math.ceil(Math.sqrt(1.6 * count)));
  return { columns, rows: Math.ceil(count / columns) };
}

/**
 * Flow blocks into lines of a width; return their places and the rows in all.
 * @param {{columns: number, rows: number}[]} shapes
 * @param {number} width in cells
 */
export function flow(shapes, width) {
  let column = 0;
  let row = 0;
  let height = 0;
  const places = /** @type {{column: number, row: number, columns: number, rows: number}[]} */ ([]);
  for (const shape of shapes) {
    const columns = Math.min(shape.columns, width);
    const rows = columns === shape.columns ? shape.rows : Math.ceil((shape.columns * shape.rows) / width);
    if (column && column + columns > width) {
      column = 0;
      row += height + 1;
      height = 0;
    }
    places.push({ column, row, columns, rows });
    column += columns + 1;
    height = Math.max(height, rows);
  }
  return { places, rows: row + height };
}

/**
 * Try one pitch and one number of columns; return the height, and where each group stands.
 * @param {{columns: number, rows: number}[][]} shapes by group
 * @param {number} pitch @param {number} columns @param {number} width @param {number} ratio
 */
function tryOut(shapes, pitch, columns, width, ratio) {
  const [gap, padding, label] = [GAP * ratio, PADDING * ratio, LABEL * ratio];
  const columnWidth = Math.floor((width - 2 * padding - (columns - 1) * gap) / columns);
  const cells = Math.max(1, Math.floor(columnWidth / pitch));
  const flows = shapes.map((each) => flow(each, cells));
  const places = /** @type {{left: number, top: number}[]} */ ([]);
  let top = padding;
  for (let at = 0; at < flows.length; at += columns) {
    const line = flows.slice(at, at + columns);
    line.forEach((_, column) => places.push({ left: padding + column * (columnWidth + gap), top: top + label }));
    top += label + Math.max(...line.map((each) => each.rows)) * pitch + gap;
  }
  return { height: top - gap + padding, flows, places, columnWidth };
}

/**
 * Lay out a fleet: the largest cells with which everything fits; else the smallest cells, and a map that is higher than its box.
 * @param {Group[]} groups
 * @param {{width: number, height: number, ratio: number, hosts: number}} box width and height in device pixels
 * @returns {Layout}
 */
export function layOut(groups, { width, height, ratio, hosts }) {
  const shapes = groups.map((group) => group.blocks.map((block) => shapeOf(block.hosts.length)));
  const { pitch, found } = choose(shapes, width, height, ratio);
  const areaOf = new Int32Array(hosts).fill(-1);
  const cellOf = new Int32Array(hosts);
  const areas = groups.map((group, number) => {
    const { places, rows } = /** @type {ReturnType<typeof flow>} */ (found.flows[number]);
    const columns = Math.max(1, ...places.map((each) => each.column + each.columns));
    const at = new Int32Array(columns * rows).fill(-1);
    const blocks = group.blocks.map((block, index) => {
      const place = /** @type {{column: number, row: number, columns: number, rows: number}} */ (places[index]);
      for (let each = 0; each < block.hosts.length; each += 1) {
        const host = /** @type {number} */ (block.hosts[each]);
        const cell = (place.row + Math.floor(each / place.columns)) * columns + place.column + (each % place.columns);
        at[cell] = host;
        areaOf[host] = number;
        cellOf[host] = cell;
      }
      return { name: block.name, ...place };
    });
    const { left, top } = /** @type {{left: number, top: number}} */ (found.places[number]);
    return { name: group.name, left, top, columns, rows, room: found.columnWidth, at, blocks };
  });
  return { pitch, width, height: Math.max(height, found.height), areas, areaOf, cellOf };
}

/** @param {{columns: number, rows: number}[][]} shapes @param {number} width @param {number} height @param {number} ratio */
function choose(shapes, width, height, ratio) {
  for (let pitch = Math.round(PITCH_MAX * ratio); pitch >= PITCH_MIN; pitch -= 1) {
    for (let columns = 1; columns <= Math.min(COLUMNS_MAX, Math.max(1, shapes.length)); columns += 1) {
      const found = tryOut(shapes, pitch, columns, width, ratio);
      if (found.height <= height) return { pitch, found };
    }
  }
  return { pitch: PITCH_MIN, found: tryOut(shapes, PITCH_MIN, Math.max(1, Math.min(2, shapes.length)), width, ratio) };
}
