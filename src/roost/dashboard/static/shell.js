/** The frame of the page: the places at the left, and the view of the present path. */
import { useEffect } from "preact/hooks";
import { h } from "preact";
import { session, signOut, version } from "./page/api.js";
import { authentication } from "./page/credentials.js";
import { Link, partsOf, place } from "./page/router.js";
import { connection, mayListen } from "./page/stream.js";
import { clock } from "./page/format.js";
import { Icon } from "./parts/icons.js";
import { SignIn } from "./views/sign_in.js";
import { PLACES, placeOf, View, viewOf } from "./views/index.js";

/** The page: the form to sign in, or the frame with a view. */
export function Shell() {
  const now = session.value;
  if (now === undefined) return h("div", { class: "empty", role: "status" }, "Loading …");
  if (now === null) return h(SignIn, {});
  const parts = partsOf(place.value.path);
  const { title } = viewOf(parts);
  return h(
    "div",
    { class: "frame" },
    h("a", { class: "skip", href: "#view" }, "Skip to the content"),
    h(Places, { current: parts[0] ?? "" }),
    h(Title, { title }),
    h("main", { class: "view", id: "view", tabIndex: -1 }, h(View, { key: parts.join("/"), parts })),
  );
}

/** @param {{title: string}} props */
function Title({ title }) {
  useEffect(() => {
    document.title = `${title} · Roost`;
  }, [title]);
  return null;
}

/** @param {{current: string}} props */
function Places({ current }) {
  return h(
    "nav",
    { class: "places", "aria-label": "Views" },
    h(Link, { to: "/", class: "brand" }, h(Icon, { name: "roost", size: 20 }), "Roost"),
    PLACES.map(({ path, name, icon }) =>
      h(
        Link,
        {
          key: path,
          to: `/${path}`,
          class: "place",
          "aria-current": path === placeOf(current) ? "page" : undefined,
        },
        h(Icon, { name: icon }),
        h("span", {}, name),
      ),
    ),
    h(Server, {}),
  );
}

function Server() {
  const now = session.value;
  const { isLive, sinceMs } = connection.value;
  return h(
    "div",
    { class: "server" },
    h(
      "div",
      { role: "status" },
      h("span", { class: isLive ? "dot" : "dot lost", "aria-hidden": "true" }),
      isLive
        ? "Live"
        : mayListen()
          ? `Not live since ${clock(sinceMs / 1000)}`
          : "Not live: your roles do not allow it",
    ),
    h("div", {}, `${location.host} · ${now?.user_id ?? ""}`),
    now?.is_plain_http ? h("div", {}, "Plain HTTP: others can read this session.") : null,
    h("div", {}, `Roost ${version}`),
    authentication === "noauth2"
      ? null
      : h("button", { class: "button plain", onClick: () => void signOut(), type: "button" }, "Sign out"),
  );
}
