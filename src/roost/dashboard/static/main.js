/** The start of the page. */
import { h, render } from "preact";
import { loadSession } from "./page/api.js";
import { start } from "./page/stream.js";
import { Shell } from "./shell.js";

const root = document.getElementById("app");
if (!root) throw new Error("the page has no element app");
render(h(Shell, {}), root);
start();
loadSession().catch(() => setTimeout(() => location.reload(), 5000));
