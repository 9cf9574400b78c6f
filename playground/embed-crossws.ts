// Surfaces behind a fetch function, with the realtime channel as plain WebSockets. It works on Node.js, Deno and Bun.
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { serve } from "crossws/server";
import { H3 } from "h3";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk(webSocketRealtime({}));
  const host = new H3().get("/", () => "a page of the host's own");
  for (const name of app.surfaces) host.mount(`/${name}`, { fetch: app.surface(name).fetch });
  // crossws calls `fetch` for each WebSocket request, and reads the channel's hooks from the answer.
  const server = serve({
    fetch: (request) => host.fetch(request),
    websocket: {},
    hostname: "127.0.0.1",
    port: 0,
    silent: true,
    // Bun's default is to cut answers that are silent for 10 s.
    bun: { idleTimeout: 0 },
  });
  await server.ready();
  const url = server.url!.replace(/\/$/, "");
  return {
    tokens,
    url,
    call: (path, init) => fetch(url + path, init),
    async [Symbol.asyncDispose]() {
      await app.close();
      await server.close(true);
    },
  };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story, "websocket");
}
