/** What people do with the map by mouse, touch and keys. */
import { useMemo, useRef } from "preact/hooks";
import { clamp, fitted, hostNear, levelBefore, levelsAt, nextLevel, ZOOM_MAX } from "./levels.js";

/** @typedef {import("./map_painter.js").MapPainter} MapPainter */

const TIP_MS = 60;
const CLICK_MS = 220;
const CLICK_MOVE = 4;

/** The events of the canvas. @param {any} env */
export function useHands(env) {
  const grip = useRef(/** @type {{x: number, y: number, view: any, isMoved: boolean} | null} */ (null));
  const fingers = useRef(new Map());
  const timer = useRef(0);
  const click = useRef(0);
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
      const { layout, size } = latest.current;
      const zoom = Math.max(fitted(layout, size).zoom, Math.min(ZOOM_MAX, view.zoom * factor));
      const real = zoom / view.zoom;
      const [x, y] = [(view.x + point.x) * real - point.x, (view.y + point.y) * real - point.y];
      map().show(clamp({ zoom, x, y }, layout, size));
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
          const [x, y] = [held.view.x + held.x - point.x, held.view.y + held.y - point.y];
          map().show(clamp({ zoom: held.view.zoom, x, y }, latest.current.layout, latest.current.size));
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
          else {
            // A second click may follow: the panel of the host would move the map below it.
            clearTimeout(click.current);
            click.current = setTimeout(() => latest.current.onPin(host), CLICK_MS);
          }
        }
        map().draw();
      },
      onPointerCancel: (/** @type {PointerEvent} */ event) => {
        fingers.current.delete(event.pointerId);
        grip.current = null;
      },
      onPointerLeave: hideTip,
      onDblClick: (/** @type {MouseEvent} */ event) => {
        clearTimeout(click.current);
        if (latest.current.isSelecting) return;
        const point = pointOf(event);
        const host = map().hostAt(point.x, point.y);
        const { layout } = latest.current;
        goDeeper(latest.current, map(), host < 0 ? hostNear(layout, map().view, point) : host, { mayOpen: host >= 0 });
      },
      onKeyDown: (/** @type {KeyboardEvent} */ event) => onKey(event, latest.current, map(), { zoomAt, centre }),
    };
  }, []);
}

/**
 * Go a level in at a host; its page is the last one.
 * @param {any} env @param {MapPainter} map @param {number} host @param {{mayOpen?: boolean}} [options]
 */
function goDeeper(env, map, host, { mayOpen = true } = {}) {
  if (host < 0) return;
  const level = nextLevel(levelsAt(env.layout, env.size, host), map.goal);
  if (level) map.glideTo(level.view);
  else if (mayOpen) env.onOpen(host);
}

/** Go a level back; return whether there was one. @param {any} env @param {MapPainter} map */
export function goBack({ layout, size }, map) {
  const middle = { x: size.width / 2, y: size.height / 2 };
  const level = levelBefore(levelsAt(layout, size, hostNear(layout, map.goal, middle)), map.goal);
  if (level) map.glideTo(level.view);
  return Boolean(level);
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
  } else if (event.key === "Enter" && map.cursor >= 0) {
    // As with clicks: the first one shows the host, the next one goes a level in.
    if (env.pinned === map.cursor) goDeeper(env, map, map.cursor);
    else env.onPin(map.cursor);
  } else if (event.key === " " && map.cursor >= 0) {
    event.preventDefault();
    env.onSelect(toggled(env.selection, map.cursor));
  } else if (event.key === "+" || event.key === "=") zoomAt(1.5, centre());
  else if (event.key === "-") zoomAt(1 / 1.5, centre());
  else if (event.key === "0") map.glideTo(fitted(env.layout, env.size));
  else if (event.key === "Escape" && !goBack(env, map)) env.onPin(-1);
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
    const [x, y] = [map.view.x + place.x - size.width / 2, map.view.y + place.y - size.height / 2];
    map.show(clamp({ zoom: map.view.zoom, x, y }, layout, size));
  }
  env.setSaid(env.describe(map.cursor));
  map.draw();
}
