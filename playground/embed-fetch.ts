// Surfaces behind a plain fetch function, as runtimes and test tools take it.
import type { Fetch } from "@portico/core";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";

export async function start(): Promise<EmbeddingStory> {
  const desk = await openDesk();
  const mounts: Readonly<Record<string, Fetch>> = {
    "/models": desk.app.surface("proxy").fetch,
    "/notebook": desk.app.surface("notebook").fetch,
  };
  const host: Fetch = (request) => {
    const url = new URL(request.url);
    const prefix = Object.keys(mounts).find((each) => url.pathname.startsWith(`${each}/`));
    if (prefix === undefined) return new Response("a page of the host's own");
    // A surface knows its own paths only: what it is mounted under is cut off.
    url.pathname = url.pathname.slice(prefix.length);
    return mounts[prefix]!(new Request(url, request));
  };
  return {
    desk,
    call: async (path, init) => host(new Request(`http://host.local${path}`, init)),
    [Symbol.asyncDispose]: () => desk[Symbol.asyncDispose](),
  };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
