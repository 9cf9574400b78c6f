// Surfaces behind a plain fetch function, for runtimes and test tools that call one.
import type { Fetch } from "@portico/core";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host: Fetch = (request) => {
    const url = new URL(request.url);
    const [, name = ""] = url.pathname.split("/");
    if (!app.surfaces.includes(name)) return new Response("a page of the host's own");
    // A surface knows only its own paths, so the path under which it is mounted is removed.
    url.pathname = url.pathname.slice(name.length + 1);
    return app.surface(name).fetch(new Request(url, request));
  };
  return {
    tokens,
    call: async (path, init) => host(new Request(`http://host.local${path}`, init)),
    [Symbol.asyncDispose]: app.close,
  };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
