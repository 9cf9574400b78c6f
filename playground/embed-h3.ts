// Surfaces inside an h3 application.
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";
import { listen } from "./listen.ts";

export async function start(): Promise<EmbeddingStory> {
  const desk = await openDesk();
  const host = new H3()
    .get("/", () => "a page of the host's own")
    .mount("/models", { fetch: desk.app.surface("proxy").fetch })
    .mount("/notebook", { fetch: desk.app.surface("notebook").fetch });
  const listening = await listen(toNodeHandler(host));
  return {
    desk,
    call: (path, init) => fetch(listening.url + path, init),
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await desk[Symbol.asyncDispose]();
    },
  };
}

if (import.meta.main) {
  await using story = await start();
  await tell(story);
}
