// Surfaces inside an Express application: as Node listeners.
import { toNodeHandler } from "@portico/core/node";
import express from "express";
import { openDesk } from "./desk.ts";
import { type EmbeddingStory, tell } from "./embedding-story.ts";
import { listen } from "./listen.ts";

export async function start(): Promise<EmbeddingStory> {
  const desk = await openDesk();
  const proxy = toNodeHandler(desk.app.surface("proxy"));
  const notebook = toNodeHandler(desk.app.surface("notebook"));
  const host = express()
    .get("/", (_request, response) => void response.send("a page of the host's own"))
    // Before any body parser: a surface reads its bodies itself.
    .use("/models", (request, response) => void proxy(request, response))
    .use("/notebook", (request, response) => void notebook(request, response));
  const listening = await listen(host);
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
