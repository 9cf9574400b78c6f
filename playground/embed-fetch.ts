// Surfaces behind a plain fetch function, as runtimes and test tools take it.
import type { Fetch } from "@portico/core";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const { app, tokens } = await openDesk();
  const host: Fetch = (request) => {
    const url = new URL(request.url);
    const [, name = ""] = url.pathname.split("/");
    if (!app.surfaces.includes(name)) return new Response("a page of the host's own");
    // A surface knows its own paths only: what it is mounted under is cut off.
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
