// Surfaces inside a Nitro application.
import type { IncomingMessage, ServerResponse } from "node:http";
import { fromNodeUpgradeHandler } from "crossws/adapters/node";
import { defineWebSocketHandler, fromNodeHandler, H3 } from "nitro/h3";
import { app } from "./desk.ts";

const host = new H3().get("/", () => "a page of the host's own");
for (const name of app.surfaces) host.mount(`/${name}`, { fetch: app.surface(name).fetch });

// Nitro does not expose its server, so `attach` cannot be used. A route serves the realtime channel.
const agent = app.surface("agent");
const below = (url = "/") => url.slice("/agent".length);
const upgrade = defineWebSocketHandler(
  fromNodeUpgradeHandler((request, socket, head) => {
    request.url = below(request.url);
    agent.upgrade(request, socket, head);
  }),
);
const poll = fromNodeHandler((request, response, _next) => {
  request.url = below(request.url);
  return agent.node(request as IncomingMessage, response as ServerResponse);
});
host.all("/agent/socket.io/", (event) => (event.req.headers.has("upgrade") ? upgrade(event) : poll(event)));

export default host;
