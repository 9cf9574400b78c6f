// Background work in a plugin: texts are accepted at once and summarized later by a model. Accepted texts survive a restart.
import { systemClock } from "@portico/adapters/clock/system";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { ask } from "@portico/adapters/models/ask";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, type App, createApp, defineContract, defineErrors, definePlugin, ports, reply } from "@portico/core";
import { createClient } from "@portico/core/client";
import { setTimeout } from "node:timers/promises";
import * as v from "valibot";

const errors = defineErrors({ summary_unknown: { status: 404, message: "No text has this id" } });

const id = v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,64}$/));
const summary = v.object({ id, state: v.picklist(["waiting", "done", "failed"]), summary: v.optional(v.string()) });
type Summary = v.InferOutput<typeof summary>;

export const summariesContract = defineContract(
  { surface: "summaries", auth: "open", envelope: (error) => ({ error: error.code, message: error.message }) },
  {
    submit: {
      method: "POST",
      path: "/texts",
      summary: "Accept a text; the same id again changes nothing",
      body: v.strictObject({ id, text: v.string() }),
      success: reply.json(v.object({ id, duplicate: v.boolean() }), 202),
      errors: {},
    },
    read: {
      method: "GET",
      path: "/summaries/:id",
      summary: "Read the summary of a text",
      params: v.strictObject({ id }),
      success: reply.json(summary),
      errors,
    },
  },
);

export const summaries = definePlugin({
  name: "summaries",
  config: v.strictObject({}),
  needs: { engine: ports.engine, models: ports.models, records: ports.records, telemetry: ports.telemetry },
  contract: summariesContract,
  setup({ engine, models, records, telemetry }, _options, scope) {
    const kept = records.collection<Summary>({ name: "summaries" });
    const [provider] = models;
    if (!provider) throw new TypeError("The plugin summaries needs a model provider");

    engine.define<{ readonly text: string }, void>(
      "summarize",
      async ({ id, step, signal }, { text }) => {
        try {
          const question = { system: "Summarize the text in one sentence.", prompt: text, telemetry };
          const answer = await step("ask", (aborted) => ask(provider, question, aborted), { repeatable: true });
          await step("keep", () => kept.put(id, { id, state: "done", summary: answer.text }), { repeatable: true });
        } catch (error) {
          // If the engine stops or parks the work, the work runs again later. Its state must not change then.
          signal.throwIfAborted();
          await step("fail", () => kept.put(id, { id, state: "failed" }), { repeatable: true });
          throw error;
        }
      },
      { onInterrupted: "resume", concurrency: 4 },
    );
    // The engine is ready after the setup of all plugins, because all kinds of work are defined then.
    scope.onReady(() => engine.ready());

    return {
      async submit({ body: { id, text } }) {
        // One commit accepts the work and makes its record visible.
        const waiting = [kept.write.put(id, { id, state: "waiting" }, "absent")];
        const { duplicate } = await engine.start("summarize", id, { text }, { records: waiting });
        return { id, duplicate };
      },
      async read({ params, fail }) {
        const found = await kept.get(params.id);
        if (!found) throw fail.summary_unknown();
        return found.value;
      },
    };
  },
});

/** An app with this plugin, the offline model, and stores in memory. Use durable records and the engine `embedded` in production. */
export function start(provider: Adapter<typeof ports.models> = demo({ id: "demo" })): Promise<App> {
  const stores = [systemClock(), memoryTelemetry({}), memoryRecords(), memoryEngine({})];
  return createApp({ name: "summaries", adapters: [...stores, provider], plugins: [summaries({})] });
}

if (import.meta.main) {
  await using app = await start();
  const client = createClient(summariesContract, { baseURL: "http://summaries.local", fetch: app.fetch });
  for (const text of ["Ports are small.", "The same id again."]) {
    const { duplicate } = await client.submit({ body: { id: "first", text } });
    console.log(duplicate ? "known" : "accepted");
  }
  let read = await client.read({ params: { id: "first" } });
  for (; read.state === "waiting"; read = await client.read({ params: { id: "first" } })) await setTimeout(10);
  console.log(`${read.state}: ${read.summary}`);
}
