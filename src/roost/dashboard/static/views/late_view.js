/** A view whose modules are loaded when it is needed. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { h } from "preact";
import { ApiError } from "../page/api.js";
import { Problem } from "../parts/elements.js";

export class LateView {
  /** @param {() => Promise<any>} load returns the component */
  constructor(load) {
    this.loaded = signal(/** @type {any} */ (null));
    this.problem = signal(/** @type {ApiError | null} */ (null));
    this.isBusy = false;
    this.load = () => {
      if (this.isBusy) return;
      this.isBusy = true;
      load().then(
        (component) => (this.loaded.value = component),
        () => (this.problem.value = new ApiError(0, "The server does not have this view of the page any more.")),
      );
    };
    /** Shows the view as soon as it is loaded. @param {any} props */
    this.Component = (props) => {
      useEffect(this.load, []);
      if (this.loaded.value) return h(this.loaded.value, props);
      if (this.problem.value) return h(Problem, { error: this.problem.value, again: () => location.reload() });
      return h("div", { class: "empty", role: "status" }, "Loading …");
    };
  }
}
