/** The map of the fleet: a canvas that people move, zoom and read with mouse, touch or keys. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { className, counted, percent } from "../page/format.js";
import { Meter } from "../parts/elements.js";
import { paletteOf } from "./colours.js";
import { watch } from "./fleet_data.js";
import { DISABLED, DOWN, DRAINING, NONE, OVER } from "./fleet_file.js";
import { layOut } from "./layout.js";
import { MapPainter, paintAge, paintShare, paintState } from "./map_painter.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */

const ZOOM_MAX = 60;
const TIP_MS = 60;
const CLICK_MOVE = 4;

/** Whether the page is dark now. */
export function useIsDark() {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(media.matches);
  useEffect(() => {
    const change = () => setDark(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return isDark;
}

/** The states of a host in words. @param {number} state */
export function stateText(state) {
  const words = [];
  if (state & DOWN) words.push("down");
  if (state & DRAINING) words.push("draining");
  if (state & DISABLED) words.push("disabled");
  if (state & OVER) words.push("over capacity");
  return words.join(", ") || "up";
}

/**
 * @param {{
 *   fleet: Fleet, colour: string, groups: import("./layout.js").Group[], labels: string[], nameOf: (host: number) => string,
 *   hits: Set<number> | null, pinned: number, onPin: (host: number) => void,
 *   selection: Set<number>, isSelecting: boolean, onSelect: (hosts: Set<number>) => void, flashes: {hosts: number[]} | null,
 * }} props
 */
export function FleetMap(props) {
  const { fleet, colour, groups, labels, nameOf, hits, pinned, selection, flashes } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const painter = useRef(/** @type {MapPainter | null} */ (null));
  const [size, setSize] = useState({ width: 0, height: 0, ratio: 1 });
  const [tip, setTip] = useState(/** @type {{host: number, x: number, y: number} | null} */ (null));
  const [said, setSaid] = useState("");
  const isDark = useIsDark();
  const palette = useMemo(() => paletteOf(isDark), [isDark]);

  useEffect(() => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    painter.current = new MapPainter(element);
    const observer = new ResizeObserver(() => {
      const ratio = devicePixelRatio || 1;
      if (!box.current) return; // The view has ended.
      const { clientWidth, clientHeight } = box.current;
      setSize({ width: Math.round(clientWidth * ratio), height: Math.round(clientHeight * ratio), ratio });
    });
    observer.observe(/** @type {HTMLDivElement} */ (box.current));
    if (new URLSearchParams(location.search).has("test")) /** @type {any} */ (window).fleetMap = painter.current;
    return () => {
      observer.disconnect();
      painter.current?.stop();
    };
  }, []);

  const layout = useMemo(
    () => (size.width ? layOut(groups, { ...size, hosts: fleet.hosts }) : null),
    [groups, fleet, size.width, size.height, size.ratio],
  );

  useEffect(() => {
    const element = canvas.current;
    const map = painter.current;
    if (!layout || !element || !map) return;
    if (element.width !== size.width || element.height !== size.height) {
      element.width = size.width;
      element.height = size.height;
    }
    if (map.layout !== layout) map.view = fitted(layout, size);
    map.hits = hits;
    map.use(layout, fleet, paintOf(fleet, colour, palette), palette, nameOf, labels);
  }, [layout, fleet, colour, palette, hits, labels, size]);

  useEffect(() => watch((hosts) => painter.current?.update(hosts)), []);
  useEffect(() => {
    if (flashes) painter.current?.flash(flashes.hosts);
  }, [flashes]);
  useEffect(() => {
    if (!painter.current) return;
    painter.current.pinned = pinned;
    painter.current.selection = selection;
    painter.current.draw();
  }, [pinned, selection]);

  const hands = useHands({ ...props, painter, box, layout, size, setTip, setSaid });
  return h(
    "div",
    { class: fleet.hosts > 20_000 ? "map-box tall" : "map-box", ref: box },
    h("canvas", {
      ref: canvas,
      tabIndex: 0,
      role: "application",
      "aria-label": `Map of ${counted(fleet.hosts, "host")}. Arrow keys move, Enter opens a host, plus and minus zoom, 0 shows all.`,
      ...hands,
    }),
    h("div", { class: "hidden-text", "aria-live": "polite" }, said),
    tip ? h(Tip, { ...tip, fleet, nameOf }) : null,
  );
}

/** @param {import("./layout.js").Layout} layout @param {{width: number, height: number}} size */
function fitted(layout, { width, height }) {
  const zoom = Math.min(1, height / layout.height);
  return { zoom, x: -Math.max(0, (width - layout.width * zoom) / 2), y: 0 };
}

/** @param {Fleet} fleet @param {string} colour @param {import("./colours.js").Palette} palette */
function paintOf(fleet, colour, palette) {
  if (colour === "state") return paintState(fleet, palette);
  if (colour === "age") return paintAge(fleet, palette, Date.now() / 1000);
  return paintShare(fleet, Math.max(0, fleet.classes.indexOf(colour)), palette);
}

/** The events of the canvas. @param {any} env */
function useHands(env) {
  const grip = useRef(/** @type {{x: number, y: number, view: any, isMoved: boolean} | null} */ (null));
  const fingers = useRef(new Map());
  const timer = useRef(0);
  const latest = useRef(env);
  latest.current = env;
  return useMemo(() => {
    const map = () => /** @type {MapPainter} */ (latest.current.painter.current);
    const pointOf = (/** @type {MouseEvent} */ event) => {
      const rect = /** @type {HTMLCanvasElement} */ (map().canvas).getBoundingClientRect();
      const { ratio } = latest.current.size;
      return { x: (event.clientX - rect.left) * ratio, y: (event.clientY - rect.top) * ratio };
    };
    const zoomAt = (/** @type {number} */ factor, /** @type {{x: number, y: number}} */ point) => {
      const { view } = map();
      const least = fitted(latest.current.layout, latest.current.size).zoom;
      const zoom = Math.max(least, Math.min(ZOOM_MAX, view.zoom * factor));
      const real = zoom / view.zoom;
      map().view = clamp(
        { zoom, x: (view.x + point.x) * real - point.x, y: (view.y + point.y) * real - point.y },
        latest.current,
      );
      map().draw();
    };
    const centre = () => ({ x: latest.current.size.width / 2, y: latest.current.size.height / 2 });
    const hideTip = () => {
      clearTimeout(timer.current);
      latest.current.setTip(null);
    };
    return {
      onWheel: (/** @type {WheelEvent} */ event) => {
        event.preventDefault();
        hideTip();
        zoomAt(1.0015 ** -event.deltaY, pointOf(event));
      },
      onPointerDown: (/** @type {PointerEvent} */ event) => {
        /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
        fingers.current.set(event.pointerId, pointOf(event));
        grip.current = { ...pointOf(event), view: { ...map().view }, isMoved: false };
        hideTip();
      },
      onPointerMove: (/** @type {PointerEvent} */ event) => {
        const point = pointOf(event);
        if (fingers.current.size === 2 && fingers.current.has(event.pointerId)) {
          pinch(fingers.current, event.pointerId, point, zoomAt);
          if (grip.current) grip.current.isMoved = true;
          return;
        }
        const held = grip.current;
        if (!held) {
          if (event.pointerType !== "touch") hover(point, event, latest.current, map(), timer);
          return;
        }
        if (Math.hypot(point.x - held.x, point.y - held.y) > CLICK_MOVE * latest.current.size.ratio)
          held.isMoved = true;
        if (!held.isMoved) return;
        if (latest.current.isSelecting || event.shiftKey) {
          map().box = {
            left: Math.min(held.x, point.x),
            top: Math.min(held.y, point.y),
            right: Math.max(held.x, point.x),
            bottom: Math.max(held.y, point.y),
          };
        } else {
          map().view = clamp(
            { zoom: held.view.zoom, x: held.view.x + held.x - point.x, y: held.view.y + held.y - point.y },
            latest.current,
          );
        }
        map().draw();
      },
      onPointerUp: (/** @type {PointerEvent} */ event) => {
        fingers.current.delete(event.pointerId);
        const held = grip.current;
        grip.current = null;
        const selected = map().box;
        map().box = null;
        if (selected) {
          latest.current.onSelect(new Set([...latest.current.selection, ...map().hostsIn(selected)]));
        } else if (held && !held.isMoved) {
          const { x, y } = pointOf(event);
          const host = map().hostAt(x, y);
          if (latest.current.isSelecting && host >= 0) latest.current.onSelect(toggled(latest.current.selection, host));
          else latest.current.onPin(host);
        }
        map().draw();
      },
      onPointerCancel: (/** @type {PointerEvent} */ event) => {
        fingers.current.delete(event.pointerId);
        grip.current = null;
      },
      onPointerLeave: hideTip,
      onDblClick: (/** @type {MouseEvent} */ event) => zoomAt(4, pointOf(event)),
      onKeyDown: (/** @type {KeyboardEvent} */ event) => onKey(event, latest.current, map(), { zoomAt, centre }),
    };
  }, []);
}

/** Keep some of the map in sight. @param {{zoom: number, x: number, y: number}} view @param {any} env */
function clamp(view, { layout, size }) {
  const [width, height] = [layout.width * view.zoom, layout.height * view.zoom];
  const bound = (/** @type {number} */ at, /** @type {number} */ length, /** @type {number} */ room) =>
    length <= room ? -(room - length) / 2 : Math.max(0, Math.min(length - room, at));
  const y = height <= size.height ? 0 : bound(view.y, height, size.height);
  return { zoom: view.zoom, x: bound(view.x, width, size.width), y };
}

/** @param {Set<number>} selection @param {number} host */
function toggled(selection, host) {
  const result = new Set(selection);
  if (!result.delete(host)) result.add(host);
  return result;
}

/** @param {Map<number, {x: number, y: number}>} fingers @param {number} id @param {{x: number, y: number}} point @param {(factor: number, at: {x: number, y: number}) => void} zoomAt */
function pinch(fingers, id, point, zoomAt) {
  const other = [...fingers].find(([each]) => each !== id)?.[1];
  const before = fingers.get(id);
  fingers.set(id, point);
  if (!other || !before) return;
  const from = Math.hypot(before.x - other.x, before.y - other.y);
  const to = Math.hypot(point.x - other.x, point.y - other.y);
  if (from > 0) zoomAt(to / from, { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 });
}

/** @param {{x: number, y: number}} point @param {PointerEvent} event @param {any} env @param {MapPainter} map @param {{current: number}} timer */
function hover(point, event, env, map, timer) {
  const host = map.hostAt(point.x, point.y);
  clearTimeout(timer.current);
  if (host < 0) {
    env.setTip(null);
    return;
  }
  const { clientX: x, clientY: y } = event;
  timer.current = setTimeout(() => env.setTip({ host, x, y }), TIP_MS);
}

/** @param {KeyboardEvent} event @param {any} env @param {MapPainter} map @param {any} tools */
function onKey(event, env, map, { zoomAt, centre }) {
  const steps = /** @type {Record<string, number[]>} */ ({
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
  });
  const step = steps[event.key];
  if (step) {
    event.preventDefault();
    move(/** @type {[number, number]} */ (step), env, map);
  } else if (event.key === "Enter" && map.cursor >= 0) env.onPin(map.cursor);
  else if (event.key === " " && map.cursor >= 0) {
    event.preventDefault();
    env.onSelect(toggled(env.selection, map.cursor));
  } else if (event.key === "+" || event.key === "=") zoomAt(1.5, centre());
  else if (event.key === "-") zoomAt(1 / 1.5, centre());
  else if (event.key === "0") {
    map.view = fitted(env.layout, env.size);
    map.draw();
  } else if (event.key === "Escape") env.onPin(-1);
}

/** Move the cursor by a cell, over gaps. @param {[number, number]} step @param {any} env @param {MapPainter} map */
function move([dx, dy], env, map) {
  const { layout, size } = env;
  if (map.cursor < 0)
    map.cursor =
      layout.areas.flatMap((/** @type {any} */ area) => [...area.at]).find((/** @type {number} */ host) => host >= 0) ??
      -1;
  else {
    const place = map.placeOf(map.cursor);
    const cell = layout.pitch * map.view.zoom;
    for (let far = 1; place && far < 400; far += 1) {
      const host = map.hostAt(place.x + cell / 2 + dx * far * cell, place.y + cell / 2 + dy * far * cell);
      if (host >= 0 && host !== map.cursor) {
        map.cursor = host;
        break;
      }
    }
  }
  const place = map.placeOf(map.cursor);
  if (place && (place.x < 0 || place.y < 0 || place.x > size.width || place.y > size.height)) {
    map.view = clamp(
      { ...map.view, x: map.view.x + place.x - size.width / 2, y: map.view.y + place.y - size.height / 2 },
      env,
    );
  }
  env.setSaid(describe(env.fleet, map.cursor, env.nameOf));
  map.draw();
}

/** A host in one sentence. @param {Fleet} fleet @param {number} host @param {(host: number) => string} nameOf */
export function describe(fleet, host, nameOf) {
  const parts = fleet.classes.map((name, at) => {
    const share = fleet.shares[at]?.[host] ?? NONE;
    return share === NONE ? "" : `${className(name)} ${percent(share / 1000, 0)} used`;
  });
  return [
    nameOf(host),
    stateText(fleet.states[host] ?? 0),
    counted(fleet.instances[host] ?? 0, "instance"),
    ...parts.filter(Boolean),
  ].join(", ");
}

/** @param {{host: number, x: number, y: number, fleet: Fleet, nameOf: (host: number) => string}} props */
function Tip({ host, x, y, fleet, nameOf }) {
  const left = x + 232 > innerWidth ? x - 232 : x + 12;
  const top = Math.min(y + 12, innerHeight - 60 - 34 * fleet.classes.length);
  return h(
    "div",
    { class: "tip", style: { left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px` } },
    h(
      "div",
      { class: "figure-row" },
      h("strong", { class: "mono" }, nameOf(host)),
      counted(fleet.instances[host] ?? 0, "instance"),
    ),
    h("div", { class: "second" }, stateText(fleet.states[host] ?? 0)),
    h(Shares, { fleet, host }),
  );
}

/** The used share of each class of a host. @param {{fleet: Fleet, host: number}} props */
export function Shares({ fleet, host }) {
  return fleet.classes.map((name, at) => {
    const share = fleet.shares[at]?.[host] ?? NONE;
    if (share === NONE) return null;
    return h(
      "div",
      { key: name },
      h("div", { class: "figure-row" }, h("span", {}, className(name)), percent(share / 1000)),
      h(Meter, { share: share / 1000 }),
    );
  });
}
