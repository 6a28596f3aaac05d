/** The map of the fleet: a canvas that people move, zoom and read with mouse, touch or keys. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { h } from "preact";
import { className, counted, percent } from "../page/format.js";
import { Meter } from "../parts/elements.js";
import { useIsDark } from "../parts/scheme.js";
import { paletteOf } from "./colours.js";
import { watch } from "./fleet_data.js";
import { DISABLED, DOWN, DRAINING, NONE, OVER } from "./fleet_file.js";
import { layOut } from "./layout.js";
import { fitted, hostNear, keepView, levelsAt, pathOf } from "./levels.js";
import { goBack, useHands } from "./map_hands.js";
import { MapPainter, paintAge, paintRoom, paintShare, paintState } from "./map_painter.js";
import { fitText } from "../room/room.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */
/** @typedef {import("../room/room.js").Room} Room */

const PATH_MS = 100;

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
 *   fleet: Fleet, colour: string, room: Room | null, groups: import("./layout.js").Group[], labels: string[], nameOf: (host: number) => string,
 *   hits: Set<number> | null, pinned: number, onPin: (host: number) => void,
 *   onOpen: (host: number) => void,
 *   selection: Set<number>, isSelecting: boolean, onSelect: (hosts: Set<number>) => void, flashes: {hosts: number[]} | null,
 * }} props
 */
export function FleetMap(props) {
  const { fleet, colour, room, groups, labels, nameOf, hits, pinned, selection, flashes } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const painter = useRef(/** @type {MapPainter | null} */ (null));
  const shown = useRef(
    /** @type {{layout: import("./layout.js").Layout, size: import("./levels.js").Size} | null} */ (null),
  );
  const [size, setSize] = useState({ width: 0, height: 0, ratio: 1 });
  const [tip, setTip] = useState(/** @type {{host: number, x: number, y: number} | null} */ (null));
  const [said, setSaid] = useState("");
  const isDark = useIsDark();
  const palette = useMemo(() => paletteOf(isDark), [isDark]);

  // Effects of the layout: otherwise the first map would wait for several frames of the browser.
  useLayoutEffect(() => {
    const element = /** @type {HTMLCanvasElement} */ (canvas.current);
    painter.current = new MapPainter(element);
    const measure = () => {
      const ratio = devicePixelRatio || 1;
      if (!box.current) return; // The view has ended.
      const { clientWidth, clientHeight } = box.current;
      const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
      setSize((before) =>
        before.width === width && before.height === height && before.ratio === ratio
          ? before
          : { width, height, ratio },
      );
    };
    measure();
    const observer = new ResizeObserver(measure);
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

  useLayoutEffect(() => {
    const element = canvas.current;
    const map = painter.current;
    if (!layout || !element || !map) return;
    if (element.width !== size.width || element.height !== size.height) {
      element.width = size.width;
      element.height = size.height;
    }
    if (map.layout !== layout) {
      const before = shown.current;
      map.show(before ? keepView(before.layout, map.goal, before.size, layout, size) : fitted(layout, size));
    }
    shown.current = { layout, size };
    map.hits = hits;
    map.use(layout, fleet, paintOf(fleet, colour, room, palette), palette, nameOf, labels);
  }, [layout, fleet, colour, room, palette, hits, labels, size]);

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

  const describeHost = (/** @type {number} */ host) => describe(fleet, host, nameOf, room);
  const hands = useHands({ ...props, painter, layout, size, setTip, setSaid, describe: describeHost });
  return h(
    "div",
    { class: fleet.hosts > 20_000 ? "map-box tall" : "map-box", ref: box },
    h("canvas", {
      ref: canvas,
      tabIndex: 0,
      role: "application",
      "aria-label": `Map of ${counted(fleet.hosts, "host")}. Arrow keys move, Enter shows a host and then goes nearer, Escape goes back, plus and minus zoom, 0 shows all.`,
      ...hands,
    }),
    layout ? h(Path, { painter, layout, size }) : null,
    h("div", { class: "hidden-text", "aria-live": "polite" }, said),
    tip ? h(Tip, { ...tip, fleet, nameOf, room }) : null,
  );
}

/**
 * The levels of the map that the view is within; each leads back to it.
 * @param {{painter: {current: MapPainter | null}, layout: import("./layout.js").Layout, size: import("./levels.js").Size}} props
 */
function Path({ painter, layout, size }) {
  const [path, setPath] = useState(/** @type {import("./levels.js").Level[]} */ ([]));
  useEffect(() => {
    const map = /** @type {MapPainter} */ (painter.current);
    let timer = 0;
    const find = () => {
      timer = 0;
      const host = hostNear(layout, map.goal, { x: size.width / 2, y: size.height / 2 });
      setPath(pathOf(levelsAt(layout, size, host), map.goal));
    };
    map.onView = () => {
      timer ||= setTimeout(find, PATH_MS);
    };
    find();
    return () => {
      clearTimeout(timer);
      map.onView = () => {};
    };
  }, [layout, size]);
  const map = painter.current;
  if (path.length < 2 || !map) return null;
  return h(
    "nav",
    { class: "map-path", "aria-label": "Levels of the map" },
    h("button", { class: "button", type: "button", onClick: () => goBack({ layout, size }, map) }, "← Back"),
    path.map((level, at) =>
      at < path.length - 1
        ? h("button", { class: "button", type: "button", onClick: () => map.glideTo(level.view) }, level.name)
        : h("span", { "aria-current": "true" }, level.name),
    ),
  );
}

/** @param {Fleet} fleet @param {string} colour @param {Room | null} room @param {import("./colours.js").Palette} palette */
function paintOf(fleet, colour, room, palette) {
  if (colour === "fit") return paintRoom(fleet, room, palette);
  if (colour === "state") return paintState(fleet, palette);
  if (colour === "age") return paintAge(fleet, palette, Date.now() / 1000);
  return paintShare(fleet, Math.max(0, fleet.classes.indexOf(colour)), palette);
}

/** A host in one sentence. @param {Fleet} fleet @param {number} host @param {(host: number) => string} nameOf @param {Room | null} room */
export function describe(fleet, host, nameOf, room) {
  const parts = fleet.classes.map((name, at) => {
    const share = fleet.shares[at]?.[host] ?? NONE;
    return share === NONE ? "" : `${className(name)} ${percent(share / 1000, 0)} used`;
  });
  return [
    nameOf(host),
    stateText(fleet.states[host] ?? 0),
    counted(fleet.instances[host] ?? 0, "instance"),
    ...(room ? [fitText(room, host)] : []),
    ...parts.filter(Boolean),
  ].join(", ");
}

/** @param {{host: number, x: number, y: number, fleet: Fleet, nameOf: (host: number) => string, room: Room | null}} props */
function Tip({ host, x, y, fleet, nameOf, room }) {
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
    room ? h("strong", {}, fitText(room, host)) : null,
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
