/** Draws the map: one pixel for a host in a canvas of its group, copied to the visible canvas at a larger scale. */
import { cssOf, fade } from "./colours.js";
import { DISABLED, DOWN, DRAINING, NONE } from "./fleet_file.js";
import { SHADES, stepOf } from "../room/room.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("../room/room.js").Room} Room */
/** @typedef {import("./colours.js").Palette} Palette */
/** @typedef {{zoom: number, x: number, y: number}} View zoom, and the visible left upper corner in device pixels of the layout */
/** @typedef {(host: number) => number} Paint returns the pixel of a host */

const LINES_FROM = 5; // device pixels of a cell from which lines part the cells
const SINGLE_FROM = 12; // from which each cell is drawn by itself
const NAMES_FROM = 70;
const LABEL_MIN = 46;
const SINGLE_MAX = 6000;
const FLASH_MS = 1400;
const FADED = 0.15;
const GLIDE_MS = 180;
export const UP_SHARE = 250; // place on the scale of a host that is up, in thousandths

/** The pixel of a host by its used share of a class. @param {Fleet} fleet @param {number} column @param {Palette} palette @returns {Paint} */
export function paintShare(fleet, column, palette) {
  const shares = fleet.shares[column];
  return (host) => {
    const state = fleet.states[host] ?? 0;
    if (state & DOWN) return palette.down;
    if (state & DRAINING) return palette.draining;
    const share = shares?.[host] ?? NONE;
    if (share === NONE) return palette.none;
    return share > 1000 ? palette.over : /** @type {number} */ (palette.table[share]);
  };
}

/** The pixel of a host by how many more instances fit; more room is further from the background. @param {Fleet} fleet @param {Room | null} room @param {Palette} palette @returns {Paint} */
export function paintRoom(fleet, room, palette) {
  const shades = SHADES.map((share) => /** @type {number} */ (palette.table[share]));
  return (host) => {
    const state = fleet.states[host] ?? 0;
    if (state & DOWN) return palette.down;
    if (state & DRAINING) return palette.draining;
    return room ? /** @type {number} */ (shades[stepOf(room.counts[host] ?? 0)]) : palette.none;
  };
}

/** The pixel of a host by its state alone. @param {Fleet} fleet @param {Palette} palette @returns {Paint} */
export function paintState(fleet, palette) {
  return (host) => {
    const state = fleet.states[host] ?? 0;
    if (state & DOWN) return palette.down;
    if (state & DRAINING) return palette.draining;
    return state & DISABLED ? palette.disabled : /** @type {number} */ (palette.table[UP_SHARE]);
  };
}

/** The pixel of a host by the age of its last report; an hour is the end of the scale. @param {Fleet} fleet @param {Palette} palette @param {number} now @returns {Paint} */
export function paintAge(fleet, palette, now) {
  return (host) => {
    const at = fleet.reported[host] ?? 0;
    if (!at) return palette.none;
    const share = Math.min(1, Math.log1p(Math.max(0, now - at)) / Math.log1p(3600));
    return /** @type {number} */ (palette.table[Math.round(1000 * share)]);
  };
}

export class MapPainter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.layers =
      /** @type {{canvas: HTMLCanvasElement, image: ImageData, pixels: Uint32Array, isStale: boolean}[]} */ ([]);
    this.layout = /** @type {Layout | null} */ (null);
    this.view = /** @type {View} */ ({ zoom: 1, x: 0, y: 0 });
    this.seen = this.view;
    this.onView = () => {};
    this.glide = /** @type {{from: View, to: View, start: number} | null} */ (null);
    this.flashes = /** @type {Map<number, number>} */ (new Map());
    this.hits = /** @type {Set<number> | null} */ (null);
    this.selection = /** @type {Set<number>} */ (new Set());
    this.cursor = -1;
    this.pinned = -1;
    this.frame = 0;
    this.fleet = /** @type {Fleet | null} */ (null);
    this.paint = /** @type {Paint} */ (() => 0);
    this.palette = /** @type {Palette | null} */ (null);
    this.nameOf = /** @type {(host: number) => string} */ (() => "");
    this.labels = /** @type {string[]} */ ([]);
    this.background = 0;
    this.isPainted = false;
    this.box = /** @type {{left: number, top: number, right: number, bottom: number} | null} */ (null);
  }

  /**
   * Use a layout and colours, and draw everything anew.
   * @param {Layout} layout @param {Fleet} fleet @param {Paint} paint @param {Palette} palette @param {(host: number) => string} nameOf @param {string[]} labels
   */
  use(layout, fleet, paint, palette, nameOf, labels) {
    if (layout !== this.layout) this.layers = layout.areas.map((area) => newLayer(area.columns, area.rows));
    this.layout = layout;
    this.fleet = fleet;
    this.paint = paint;
    this.palette = palette;
    this.nameOf = nameOf;
    this.labels = labels;
    this.background = pixelOfCss(palette.background);
    layout.areas.forEach((area, number) => {
      const layer = /** @type {MapPainter["layers"][number]} */ (this.layers[number]);
      for (let cell = 0; cell < area.at.length; cell += 1)
        layer.pixels[cell] = this.pixelOf(/** @type {number} */ (area.at[cell]));
      layer.isStale = true;
    });
    this.draw();
  }

  /** @param {number} host @returns {number} */
  pixelOf(host) {
    const { background } = this;
    if (host < 0) return background;
    const pixel = this.paint(host);
    return this.hits && !this.hits.has(host) ? fade(pixel, background, FADED) : pixel;
  }

  /** Draw changed hosts. @param {number[]} hosts */
  update(hosts) {
    if (!this.layout) return;
    for (const host of hosts) {
      const area = this.layout.areaOf[host] ?? -1;
      const layer = this.layers[area];
      if (!layer) continue;
      layer.pixels[/** @type {number} */ (this.layout.cellOf[host])] = this.pixelOf(host);
      layer.isStale = true;
    }
    this.draw();
  }

  /** Light up hosts on which decisions landed. @param {number[]} hosts */
  flash(hosts) {
    const end = performance.now() + FLASH_MS;
    for (const host of hosts) this.flashes.set(host, end);
    this.draw();
  }

  /** Move to a view, at once for people who want less motion. @param {View} view */
  glideTo(view) {
    const isStill = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
    this.glide = isStill ? null : { from: this.view, to: view, start: performance.now() };
    if (isStill) this.view = view;
    this.draw();
  }

  /** The view at the end of the present move. */
  get goal() {
    return this.glide?.to ?? this.view;
  }

  /** Show a view at once. @param {View} view */
  show(view) {
    this.glide = null;
    this.view = view;
    this.draw();
  }

  /** Draw with the next frame of the browser. */
  draw() {
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0;
      this.paintFrame(now);
    });
  }

  stop() {
    cancelAnimationFrame(this.frame);
  }

  /** @param {number} now */
  paintFrame(now) {
    this.advance(now);
    const { context, canvas, layout, palette, view } = this;
    if (!layout || !palette) return;
    if (this.view !== this.seen) this.onView();
    this.seen = this.view;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const cell = layout.pitch * view.zoom;
    context.imageSmoothingEnabled = cell < 1;
    layout.areas.forEach((area, number) => {
      const left = area.left * view.zoom - view.x;
      const top = area.top * view.zoom - view.y;
      if (left > canvas.width || top > canvas.height || left + area.columns * cell < 0 || top + area.rows * cell < 0)
        return;
      this.paintArea(area, /** @type {MapPainter["layers"][number]} */ (this.layers[number]), left, top, cell);
      this.paintLabels(area, number, left, top, cell);
    });
    this.paintMarks(now, cell);
    if (!this.isPainted) performance.mark("fleet-painted");
    this.isPainted = true;
    if (this.flashes.size || this.glide) this.draw();
  }

  /** Go on with a move to another view. @param {number} now */
  advance(now) {
    if (!this.glide) return;
    const { from, to, start } = this.glide;
    const part = Math.min(1, Math.max(0, (now - start) / GLIDE_MS));
    this.view = part < 1 ? between(from, to, part, this.canvas) : to;
    if (part === 1) this.glide = null;
  }

  /** @param {import("./layout.js").Area} area @param {MapPainter["layers"][number]} layer @param {number} left @param {number} top @param {number} cell */
  paintArea(area, layer, left, top, cell) {
    const { context, canvas } = this;
    const palette = /** @type {Palette} */ (this.palette);
    const from = Math.max(0, Math.floor(-left / cell));
    const to = Math.min(area.columns, Math.ceil((canvas.width - left) / cell));
    const first = Math.max(0, Math.floor(-top / cell));
    const last = Math.min(area.rows, Math.ceil((canvas.height - top) / cell));
    if (from >= to || first >= last) return;
    if (cell >= SINGLE_FROM && (to - from) * (last - first) <= SINGLE_MAX) {
      this.paintCells(area, layer, { left, top, cell, from, to, first, last });
      return;
    }
    if (layer.isStale) {
      /** @type {CanvasRenderingContext2D} */ (layer.canvas.getContext("2d")).putImageData(layer.image, 0, 0);
      layer.isStale = false;
    }
    context.drawImage(
      layer.canvas,
      from,
      first,
      to - from,
      last - first,
      left + from * cell,
      top + first * cell,
      (to - from) * cell,
      (last - first) * cell,
    );
    if (cell < LINES_FROM) return;
    context.fillStyle = palette.background;
    for (let column = from; column <= to; column += 1)
      context.fillRect(Math.round(left + column * cell), top + first * cell, 1, (last - first) * cell);
    for (let row = first; row <= last; row += 1)
      context.fillRect(left + from * cell, Math.round(top + row * cell), (to - from) * cell, 1);
    if (cell >= 6) this.paintHatches(area, { left, top, cell, from, to, first, last });
  }

  /** @param {import("./layout.js").Area} area @param {MapPainter["layers"][number]} layer @param {{left: number, top: number, cell: number, from: number, to: number, first: number, last: number}} box */
  paintCells(area, layer, box) {
    const { context } = this;
    const palette = /** @type {Palette} */ (this.palette);
    const { left, top, cell, from, to, first, last } = box;
    const gap = Math.min(3, Math.max(1, Math.round(cell / 10)));
    const size = cell - gap;
    const radius = Math.min(3 * (globalThis.devicePixelRatio || 1), size / 4);
    for (let row = first; row < last; row += 1) {
      for (let column = from; column < to; column += 1) {
        const host = /** @type {number} */ (area.at[row * area.columns + column]);
        if (host < 0) continue;
        const pixel = /** @type {number} */ (layer.pixels[row * area.columns + column]);
        context.beginPath();
        context.roundRect(left + column * cell, top + row * cell, size, size, radius);
        context.fillStyle = cssOf(pixel);
        context.fill();
        context.strokeStyle = palette.isDark ? "rgba(231,234,238,0.16)" : "rgba(28,33,39,0.14)";
        context.lineWidth = 1;
        context.stroke();
        if (cell >= NAMES_FROM) this.paintName(host, left + column * cell, top + row * cell, size, pixel);
      }
    }
    this.paintHatches(area, box);
  }

  /** @param {number} host @param {number} left @param {number} top @param {number} size @param {number} pixel */
  paintName(host, left, top, size, pixel) {
    const { context } = this;
    const light = 0.3 * (pixel & 255) + 0.59 * ((pixel >> 8) & 255) + 0.11 * ((pixel >> 16) & 255);
    context.fillStyle = light > 140 ? "#1c2127" : "#ffffff";
    context.font = `${11 * (globalThis.devicePixelRatio || 1)}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.save();
    context.beginPath();
    context.rect(left, top, size, size);
    context.clip();
    context.fillText(this.nameOf(host), left + 5, top + 5);
    context.restore();
  }

  /** Hatch disabled hosts: their colour alone says too little. @param {import("./layout.js").Area} area @param {{left: number, top: number, cell: number, from: number, to: number, first: number, last: number}} box */
  paintHatches(area, { left, top, cell, from, to, first, last }) {
    const { context } = this;
    const states = /** @type {Fleet} */ (this.fleet).states;
    context.strokeStyle = /** @type {Palette} */ (this.palette).isDark ? "#c8ccd4" : "#3d434c";
    context.lineWidth = Math.max(1, cell / 14);
    context.beginPath();
    for (let row = first; row < last; row += 1) {
      for (let column = from; column < to; column += 1) {
        const host = /** @type {number} */ (area.at[row * area.columns + column]);
        if (host < 0 || !((states[host] ?? 0) & DISABLED)) continue;
        const [x, y, size] = [left + column * cell, top + row * cell, cell - 2];
        context.moveTo(x, y + size);
        context.lineTo(x + size, y);
        context.moveTo(x, y + size / 2);
        context.lineTo(x + size / 2, y);
        context.moveTo(x + size / 2, y + size);
        context.lineTo(x + size, y + size / 2);
      }
    }
    context.stroke();
  }

  /** @param {import("./layout.js").Area} area @param {number} number @param {number} left @param {number} top @param {number} cell */
  paintLabels(area, number, left, top, cell) {
    const { context } = this;
    const palette = /** @type {Palette} */ (this.palette);
    const ratio = globalThis.devicePixelRatio || 1;
    context.textBaseline = "alphabetic";
    context.fillStyle = palette.ink;
    context.font = `600 ${12 * ratio}px system-ui, sans-serif`;
    const y = top - 6 * ratio;
    const room = Math.max(area.room * this.view.zoom, area.columns * cell);
    const name = fitted(context, area.name, room);
    context.fillText(name, left, y);
    const used = context.measureText(name).width + 8 * ratio;
    context.fillStyle = palette.isDark ? "#9aa4b1" : "#5b6470";
    context.font = `${12 * ratio}px system-ui, sans-serif`;
    context.fillText(fitted(context, this.labels[number] ?? "", room - used), left + used, y);
    if (cell < 14) return;
    for (const block of area.blocks) {
      if (!block.name || block.columns * cell < LABEL_MIN * ratio || area.blocks.length < 2) continue;
      const [x, above] = [left + block.column * cell, top + block.row * cell - 3 * ratio];
      if (block.row > 0 && above > 0) context.fillText(block.name, x, above, block.columns * cell);
    }
  }

  /** @param {number} now @param {number} cell */
  paintMarks(now, cell) {
    const { context } = this;
    const palette = /** @type {Palette} */ (this.palette);
    for (const [host, end] of this.flashes) {
      if (end < now) this.flashes.delete(host);
      else this.ring(host, cell, palette.isDark ? "#8ab4ff" : "#1b5fc1", Math.max(2, cell / 8), (end - now) / FLASH_MS);
    }
    for (const host of this.selection) this.ring(host, cell, palette.isDark ? "#8ab4ff" : "#1b5fc1", 2, 1);
    if (this.pinned >= 0) this.ring(this.pinned, cell, palette.ink, 2.5, 1);
    if (this.cursor >= 0) this.ring(this.cursor, cell, palette.ink, 2, 1);
    if (this.box) {
      const { left, top, right, bottom } = this.box;
      context.strokeStyle = palette.ink;
      context.setLineDash([4, 3]);
      context.strokeRect(left, top, right - left, bottom - top);
      context.setLineDash([]);
    }
  }

  /** @param {number} host @param {number} cell @param {string} colour @param {number} width @param {number} strength */
  ring(host, cell, colour, width, strength) {
    const place = this.placeOf(host);
    if (!place) return;
    const { context } = this;
    context.globalAlpha = Math.max(0, Math.min(1, strength));
    context.strokeStyle = colour;
    context.lineWidth = width;
    const size = Math.max(cell, 6);
    context.strokeRect(place.x - 1 - (size - cell) / 2, place.y - 1 - (size - cell) / 2, size + 1, size + 1);
    context.globalAlpha = 1;
  }

  /** The left upper corner of a host on the canvas. @param {number} host */
  placeOf(host) {
    const { layout, view } = this;
    const area = layout?.areas[layout.areaOf[host] ?? -1];
    if (!layout || !area) return null;
    const index = /** @type {number} */ (layout.cellOf[host]);
    const cell = layout.pitch * view.zoom;
    return {
      x: area.left * view.zoom - view.x + (index % area.columns) * cell,
      y: area.top * view.zoom - view.y + Math.floor(index / area.columns) * cell,
    };
  }

  /** The host at a point of the canvas; -1: none. @param {number} x @param {number} y device pixels */
  hostAt(x, y) {
    const { layout, view } = this;
    if (!layout) return -1;
    const cell = layout.pitch * view.zoom;
    for (const area of layout.areas) {
      const column = Math.floor((x + view.x - area.left * view.zoom) / cell);
      const row = Math.floor((y + view.y - area.top * view.zoom) / cell);
      if (column >= 0 && row >= 0 && column < area.columns && row < area.rows)
        return /** @type {number} */ (area.at[row * area.columns + column]);
    }
    return -1;
  }

  /** The hosts within a rectangle of the canvas. @param {{left: number, top: number, right: number, bottom: number}} box */
  hostsIn({ left, top, right, bottom }) {
    const { layout, view } = this;
    /** @type {number[]} */
    const found = [];
    if (!layout) return found;
    const cell = layout.pitch * view.zoom;
    for (const area of layout.areas) {
      const [x, y] = [area.left * view.zoom - view.x, area.top * view.zoom - view.y];
      const from = Math.max(0, Math.floor((left - x) / cell));
      const to = Math.min(area.columns - 1, Math.floor((right - x) / cell));
      const first = Math.max(0, Math.floor((top - y) / cell));
      const last = Math.min(area.rows - 1, Math.floor((bottom - y) / cell));
      for (let row = first; row <= last; row += 1)
        for (let column = from; column <= to; column += 1) {
          const host = /** @type {number} */ (area.at[row * area.columns + column]);
          if (host >= 0 && (!this.hits || this.hits.has(host))) found.push(host);
        }
    }
    return found;
  }
}

/**
 * A view on the way to another one: the zoom grows evenly, and the middle of the canvas moves along a line.
 * @param {View} from @param {View} to @param {number} part from 0 to 1 @param {{width: number, height: number}} size
 */
function between(from, to, part, { width, height }) {
  const eased = part * (2 - part);
  const zoom = from.zoom * (to.zoom / from.zoom) ** eased;
  // The nearer view decides: its own part of the way is short in the coordinates of the layout.
  const way = from.zoom === to.zoom ? eased : (1 / zoom - 1 / from.zoom) / (1 / to.zoom - 1 / from.zoom);
  const middle = (/** @type {number} */ one, /** @type {number} */ other, /** @type {number} */ half) => {
    const [start, end] = [(one + half) / from.zoom, (other + half) / to.zoom];
    return (start + (end - start) * way) * zoom - half;
  };
  return { zoom, x: middle(from.x, to.x, width / 2), y: middle(from.y, to.y, height / 2) };
}

/** @param {number} columns @param {number} rows */
function newLayer(columns, rows) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = Math.max(1, rows);
  const image = new ImageData(canvas.width, canvas.height);
  return { canvas, image, pixels: new Uint32Array(image.data.buffer), isStale: true };
}

/** A text that fits a width: its end gives way to dots. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return length ? `${text.slice(0, length)}…` : "";
}

/** @param {string} css */
function pixelOfCss(css) {
  const value = Number.parseInt(css.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (((value >> 8) & 255) << 8) | (value >> 16)) >>> 0;
}
