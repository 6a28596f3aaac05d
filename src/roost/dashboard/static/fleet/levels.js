/** The levels of the map: the fleet, a group, a rack, the cells of single hosts. People move from one to the next. */

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Area} Area */
/** @typedef {{zoom: number, x: number, y: number}} View */
/** @typedef {{width: number, height: number, ratio: number}} Size of the canvas in device pixels, and these per CSS pixel */
/** @typedef {{name: string, view: View}} Level */

export const ZOOM_MAX = 60;
const CELL = 76; // CSS pixels of a cell from which it has the name of its host
const LABEL = 24; // CSS pixels above a group
const MARGIN = 0.94;
const STEP = 1.2; // a level is at least this much nearer than the one before

/** The view of the whole fleet. @param {Layout} layout @param {{width: number, height: number}} size @returns {View} */
export function fitted(layout, { width, height }) {
  const zoom = Math.min(1, height / layout.height);
  return { zoom, x: -Math.max(0, (width - layout.width * zoom) / 2), y: 0 };
}

/** A view that keeps some of the map in sight. @param {View} view @param {Layout} layout @param {{width: number, height: number}} size @returns {View} */
export function clamp(view, layout, size) {
  const [width, height] = [layout.width * view.zoom, layout.height * view.zoom];
  const bound = (/** @type {number} */ at, /** @type {number} */ length, /** @type {number} */ room) =>
    length <= room ? -(room - length) / 2 : Math.max(0, Math.min(length - room, at));
  const y = height <= size.height ? 0 : bound(view.y, height, size.height);
  return { zoom: view.zoom, x: bound(view.x, width, size.width), y };
}

/**
 * The levels at a host, each nearer than the one before: the fleet first, the cells of hosts last.
 * @param {Layout} layout @param {Size} size @param {number} host
 * @returns {Level[]}
 */
export function levelsAt(layout, size, host) {
  const found = [{ name: "Fleet", view: fitted(layout, size) }];
  const area = layout.areas[layout.areaOf[host] ?? -1];
  if (!area) return found;
  const { pitch } = layout;
  const [row, column] = placeOf(layout, host);
  const nearest = Math.min(ZOOM_MAX, Math.max(1, (CELL * size.ratio) / pitch));
  const add = (
    /** @type {string} */ name,
    /** @type {{left: number, top: number, width: number, height: number}} */ box,
  ) => {
    const zoom = Math.min(nearest, (MARGIN * size.width) / box.width, (MARGIN * size.height) / box.height);
    const last = /** @type {Level} */ (found.at(-1));
    if (zoom < STEP * last.view.zoom) return;
    const x = (box.left + box.width / 2) * zoom - size.width / 2;
    const y = (box.top + box.height / 2) * zoom - size.height / 2;
    found.push({ name, view: clamp({ zoom, x, y }, layout, size) });
  };
  const label = LABEL * size.ratio;
  const { left, top } = area;
  add(area.name, { left, top: top - label, width: area.columns * pitch, height: area.rows * pitch + label });
  const block = area.blocks.find((each) => isWithin(each, row, column));
  if (block && area.blocks.length > 1)
    add(block.name || "no rack", {
      left: left + block.column * pitch,
      top: top + block.row * pitch,
      width: block.columns * pitch,
      height: block.rows * pitch,
    });
  add("hosts", { left: left + column * pitch, top: top + row * pitch, width: pitch, height: pitch });
  return found;
}

/** The level after a view, towards a host; undefined: its page. @param {Level[]} levels @param {View} view */
export const nextLevel = (levels, view) => levels.find((level) => level.view.zoom >= STEP * view.zoom);

/** The level before a view, towards the fleet; undefined: it shows the fleet. @param {Level[]} levels @param {View} view */
export const levelBefore = (levels, view) => levels.findLast((level) => level.view.zoom * 1.02 < view.zoom);

/** The levels that a view is within, the fleet first. @param {Level[]} levels @param {View} view */
export const pathOf = (levels, view) => levels.filter((level, at) => at === 0 || level.view.zoom <= 1.02 * view.zoom);

/**
 * The host that is nearest to a point of the canvas; -1: there is none.
 * @param {Layout} layout @param {View} view @param {{x: number, y: number}} point in device pixels
 */
export function hostNear(layout, view, { x, y }) {
  const [left, top] = [(x + view.x) / view.zoom, (y + view.y) / view.zoom];
  let area = /** @type {Area | undefined} */ (undefined);
  let least = Infinity;
  for (const each of layout.areas) {
    const [right, bottom] = [each.left + each.columns * layout.pitch, each.top + each.rows * layout.pitch];
    const far = Math.hypot(outside(left, each.left, right), outside(top, each.top, bottom));
    if (far < least) [area, least] = [each, far];
  }
  return area ? nearestIn(area, (left - area.left) / layout.pitch - 0.5, (top - area.top) / layout.pitch - 0.5) : -1;
}

/** How far a number is outside of bounds. @param {number} at @param {number} from @param {number} to */
const outside = (at, from, to) => Math.max(0, from - at, at - to);

/** @param {Area} area @param {number} column @param {number} row */
function nearestIn(area, column, row) {
  let found = -1;
  let least = Infinity;
  for (let cell = 0; cell < area.at.length; cell += 1) {
    const host = /** @type {number} */ (area.at[cell]);
    if (host < 0) continue;
    const far = ((cell % area.columns) - column) ** 2 + (Math.floor(cell / area.columns) - row) ** 2;
    if (far < least) [found, least] = [host, far];
  }
  return found;
}

/**
 * The view of a new layout that shows the same hosts as a view of another layout at the same size.
 * @param {Layout} before @param {View} view @param {{width: number, height: number}} oldSize
 * @param {Layout} layout @param {{width: number, height: number}} size
 * @returns {View}
 */
export function keepView(before, view, oldSize, layout, size) {
  const isSame =
    before.areas.length === layout.areas.length &&
    before.areas.every((each, at) => each.name === layout.areas[at]?.name);
  const host = hostNear(before, view, { x: oldSize.width / 2, y: oldSize.height / 2 });
  if (!isSame || view.zoom <= 1.02 * fitted(before, oldSize).zoom || (layout.areaOf[host] ?? -1) < 0)
    return fitted(layout, size);
  const zoom = Math.max(fitted(layout, size).zoom, (before.pitch * view.zoom) / layout.pitch);
  const area = /** @type {Area} */ (layout.areas[/** @type {number} */ (layout.areaOf[host])]);
  const [row, column] = placeOf(layout, host);
  const x = (area.left + (column + 0.5) * layout.pitch) * zoom - size.width / 2;
  const y = (area.top + (row + 0.5) * layout.pitch) * zoom - size.height / 2;
  return clamp({ zoom, x, y }, layout, size);
}

/** Row and column of a host within its group. @param {Layout} layout @param {number} host @returns {[number, number]} */
function placeOf(layout, host) {
  const { columns } = /** @type {Area} */ (layout.areas[/** @type {number} */ (layout.areaOf[host])]);
  const cell = /** @type {number} */ (layout.cellOf[host]);
  return [Math.floor(cell / columns), cell % columns];
}

/** @param {{row: number, column: number, rows: number, columns: number}} block @param {number} row @param {number} column */
const isWithin = (block, row, column) =>
  row >= block.row && row < block.row + block.rows && column >= block.column && column < block.column + block.columns;
