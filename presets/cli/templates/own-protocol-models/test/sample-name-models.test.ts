import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Secret } from "@portico/core";
import { OWN_ANSWER, type OwnServicePlay, ownModelsConformance } from "@portico/test/conformance/own-models";
import { sampleNameModels } from "../src/sample-name-models.ts";

const KEY = "a-key-that-no-answer-shows";

// A stand-in for your service. The suite says what it does: `play` is called before the calls that it is for.
ownModelsConformance("sample-name", async () => {
  let play: OwnServicePlay = "answer";
  const answers: Record<OwnServicePlay, (out: ServerResponse) => Promise<unknown>> = {
    answer: async (out) => out.end(`${TEXT}${line({ end: { inputTokens: 3, outputTokens: 12 } })}`),
    refuse: async (out) => out.writeHead(429).end(`Too many calls with ${KEY}`),
    break: async (out) => out.end(TEXT),
    hold: async () => {},
    endless: async (out) => {
      while (!out.destroyed) if (!out.write(TEXT)) await Promise.race([once(out, "drain"), once(out, "close")]);
    },
    down: async (out) => out.destroy(),
  };
  const open = new Set<ServerResponse>();
  const service = createServer((request, out) => {
    open.add(out.once("close", () => open.delete(out)));
    request.resume().once("end", () => void answers[play](out).catch(() => out.destroy()));
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const close = () => {
    service.close();
    service.closeAllConnections();
  };
  return {
    adapter: sampleNameModels({ id: "sample-name", baseUrl, credential: new Secret(KEY), models: ["small", "large"] }),
    hidden: [KEY, baseUrl],
    play(what) {
      play = what;
      if (what === "down") close();
    },
    open: () => open.size,
    close,
  };
});

function line(told: object): string {
  return `${JSON.stringify(told)}\n`;
}

const TEXT = line({ text: OWN_ANSWER });
