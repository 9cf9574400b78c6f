// A model provider with a protocol of its own: one JSON object per line, over TCP.
import { connect, createServer } from "node:net";
import { type App, createApp, ports, Secret } from "@portico/core";
import { defineModelProvider, ModelRefusal, readLines } from "@portico/core/model-protocols";
import * as v from "valibot";

export interface LineModelsOptions {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly key: Secret;
  readonly models: readonly string[];
}

/** One line of the service. It ends an answer with the counts of tokens. */
const line = v.union([
  v.object({ say: v.string() }),
  v.object({ call: v.string(), with: v.record(v.string(), v.any()) }),
  v.object({ refuse: v.string(), waitMs: v.optional(v.number()) }),
  v.object({ done: v.object({ read: v.number(), said: v.number() }) }),
]);

/** Models that are asked with one line of JSON, and answer with several. */
export const lineModels = defineModelProvider({
  name: "models/lines",
  open: (_given, { id, host, port, key, models }: LineModelsOptions) => ({
    id,
    models,
    takes: ["tools"],
    secrets: [key],
    async *answer({ model, system, turns, tools }, signal) {
      const socket = connect({ host, port, signal });
      socket.write(`${JSON.stringify({ key: key.reveal(), model, system, turns, tools })}\n`);
      for await (const text of readLines(socket)) {
        const told = v.parse(line, JSON.parse(text));
        if ("say" in told) yield told.say;
        else if ("call" in told) yield { type: "tool-call", name: told.call, arguments: told.with };
        else if ("refuse" in told) throw new ModelRefusal("rate-limit", told.refuse, { retryAfterMs: told.waitMs ?? 1_000 });
        else {
          yield { type: "usage", usage: { input: told.done.read, output: told.done.said } };
          return;
        }
      }
      throw new ports.ModelUnreachable(`Provider "${id}" ended its answer early`);
    },
  }),
});

/** An app that has only this provider. */
export function start(options: LineModelsOptions): Promise<App> {
  return createApp({ name: "over-lines", adapters: [lineModels(options)] });
}

if (import.meta.main) {
  const standIn = createServer(async (socket) => {
    for await (const text of readLines(socket)) {
      const { turns } = JSON.parse(text) as { turns: readonly { text: string }[] };
      const lines = [{ say: "You said: " }, { say: turns.at(-1)!.text }, { done: { read: 3, said: 5 } }];
      socket.end(lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
    }
  });
  await new Promise<void>((resolve) => standIn.listen(0, "127.0.0.1", resolve));
  const { port } = standIn.address() as { port: number };
  await using app = await start({ id: "lines", host: "127.0.0.1", port, key: new Secret("a-key-of-lines"), models: ["small"] });
  const [provider] = app.port(ports.models);
  const question = { model: "small", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
  const call = { headers: {}, query: "", body: Buffer.from(JSON.stringify(question)) };
  const answer = await provider!.send(call, new AbortController().signal);
  const { content } = JSON.parse(answer.whole!.toString()) as { content: readonly { text: string }[] };
  console.log(`${answer.status}: ${content[0]?.text}`);
  standIn.close();
}
