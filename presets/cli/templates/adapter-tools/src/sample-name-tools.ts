import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";

export interface SampleNameToolsOptions {
  /** Maximum number of characters of one text. Default: 10,000. */
  readonly longest?: number;
}

/** Tools for agents. This example has one tool, which counts words. */
export const sampleNameTools = defineAdapter({
  name: "tools/sample-name",
  port: ports.tools,
  // Ports that the tools use, such as `{ records: ports.records }`. `open` receives them as its first parameter.
  needs: {},
  open(_given, { longest = 10_000 }: SampleNameToolsOptions): ports.ToolSource {
    const counted = v.strictObject({ text: v.pipe(v.string(), v.maxLength(longest)) });
    const tools: readonly ports.ToolDefinition[] = [
      {
        id: "count_words",
        name: "count_words",
        description: "Counts the words of a text.",
        inputSchema: {
          type: "object",
          properties: { text: { type: "string", maxLength: longest } },
          required: ["text"],
          additionalProperties: false,
        },
        riskLevel: "low",
        requiresConfirmation: false,
        idempotent: true,
      },
    ];
    return {
      id: "sample-name",
      list: async () => tools,
      async call({ toolId, arguments: args }, signal) {
        signal.throwIfAborted();
        if (!tools.some(({ id }) => id === toolId)) throw new ports.ToolNotFound(`Unknown tool "${toolId}"`);
        const { text } = parsed(counted, args);
        return told(String(text.split(/\s+/).filter(Boolean).length));
      },
    };
  },
});

/** Arguments come from a model. The error names the invalid paths, and repeats no value. */
function parsed<const S extends v.GenericSchema>(schema: S, args: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, args);
  if (result.success) return result.output;
  const paths = result.issues.map((issue) => v.getDotPath(issue) ?? "(arguments)");
  throw new ports.ToolArgumentsInvalid(`Invalid arguments: ${paths.join(", ")}`);
}

function told(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: false };
}
