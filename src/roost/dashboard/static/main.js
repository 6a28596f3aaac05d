/** The start of the page. */
import { h, render } from "preact";
import { loadSession } from "./page/api.js";
import { partsOf, place } from "./page/router.js";
import { start } from "./page/stream.js";
import { Shell } from "./shell.js";
import { begin } from "./views/index.js";

const root = document.getElementById("app");
if (!root) throw new Error("the page has no element app");
begin(partsOf(place.peek().path));
render(h(Shell, {}), root);
start();
loadSession().catch(() => setTimeout(() => location.reload(), 5000));
