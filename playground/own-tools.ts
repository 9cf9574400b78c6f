// A custom tool source that uses the port `records`.
import { memoryRecords } from "@portico/adapters/records/memory";
import { type App, createApp, defineAdapter, ports } from "@portico/core";
import * as v from "valibot";

export interface MemoryToolsOptions {
  /** Characters of one remembered text; default 2000. */
  readonly longest?: number;
}

interface Fact {
  readonly text: string;
}

/** Two tools with which an agent stores and reads facts about its user: `remember` and `recall`. */
export const memoryTools = defineAdapter({
  name: "tools/memory",
  port: ports.tools,
  needs: { records: ports.records },
  open({ records }, { longest = 2000 }: MemoryToolsOptions): ports.ToolSource {
    const facts = records.collection<Fact>({ name: "remembered-facts" });
    const topic = v.pipe(v.string(), v.regex(/^[a-z0-9-]{1,64}$/));
    const remembered = v.strictObject({ topic, text: v.pipe(v.string(), v.maxLength(longest)) });
    const recalled = v.strictObject({ topic });
    const definitions = [
      definition("remember", "Keeps a fact about the user.", { topic: TOPIC, text: { type: "string", maxLength: longest } }),
      definition("recall", "Tells what was kept under a topic.", { topic: TOPIC }),
    ];

    const run = async (tool: string, args: unknown, user: string): Promise<ports.ToolResult> => {
      if (tool === "remember") {
        const { topic, text } = parsed(remembered, args);
        await facts.put(`${user}/${topic}`, { text });
        return told(`Kept under "${topic}".`);
      }
      const { topic } = parsed(recalled, args);
      const found = await facts.get(`${user}/${topic}`);
      return told(found?.value.text ?? `Nothing is kept under "${topic}".`);
    };

    return {
      id: "memory",
      list: async () => definitions,
      async call({ toolId, arguments: args, caller }, signal) {
        signal.throwIfAborted();
        if (!definitions.some(({ id }) => id === toolId)) throw new ports.ToolNotFound(`Unknown tool "${toolId}"`);
        try {
          return await run(toolId, args, caller.userId ?? "nobody");
        } catch (cause) {
          // The port `records` has its own errors. Callers of the port `tools` know only the errors of `tools`.
          if (cause instanceof ports.RecordsUnavailable)
            throw new ports.ToolsUnavailable("The memory is not available now", { cause });
          throw cause;
        }
      },
    };
  },
});

const TOPIC = { type: "string", pattern: "^[a-z0-9-]{1,64}$" };

function definition(id: string, description: string, properties: Readonly<Record<string, object>>): ports.ToolDefinition {
  const inputSchema = { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
  // Idempotent: storing the same text again changes nothing.
  return { id, name: id, description, inputSchema, riskLevel: "low", requiresConfirmation: false, idempotent: true };
}

/** Arguments come from a model. The error names the invalid paths, and contains no values. */
function parsed<const S extends v.GenericSchema>(schema: S, args: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, args);
  if (result.success) return result.output;
  const paths = result.issues.map((issue) => v.getDotPath(issue) ?? "(arguments)");
  throw new ports.ToolArgumentsInvalid(`Invalid arguments: ${paths.join(", ")}`);
}

function told(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: false };
}

/** An app that has only these tools and a store for them. */
export function start(): Promise<App> {
  return createApp({ name: "memory-tools", adapters: [memoryTools({}), memoryRecords()] });
}

if (import.meta.main) {
  await using app = await start();
  for (const source of app.port(ports.tools)) {
    console.log(`${source.id} offers: ${(await source.list()).map(({ name }) => name).join(", ")}`);
    const ask = (toolId: string, args: object) =>
      source.call({ toolId, arguments: args, caller: { userId: "ada" } }, new AbortController().signal);
    await ask("remember", { topic: "tea", text: "No milk." });
    const { content } = await ask("recall", { topic: "tea" });
    console.log(content);
  }
}
