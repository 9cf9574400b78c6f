import { defineAdapter, ports } from "@portico/core";
import { askForOutput, askForText, toNodeFailed } from "./model/ask-model.ts";
import { type ModelInput, modelInput, promptFaults, toModelPrompt } from "./model/model-input.ts";
import { OutputChecks } from "./model/output-check.ts";

const NO_PROVIDERS = "No model providers are configured in this instance: nodes of type model cannot run";

/** Nodes that ask a model: `{ text, usage }`, or what the JSON Schema `output` describes. */
export const modelNode = defineAdapter({
  name: "workflow-nodes/model",
  port: ports.workflowNodes,
  needs: { models: ports.models },
  open({ models }): ports.WorkflowNode<ModelInput> {
    const checks = new OutputChecks();
    /** Names as they were last told: definitions are checked without waiting. */
    const known = new Map<string, readonly string[]>();
    const list = async (provider: ports.ModelProvider, signal?: AbortSignal): Promise<readonly string[]> => {
      const names = await provider.listModels(signal);
      known.set(provider.id, names);
      return names;
    };
    // In the background: providers that are asked for their models may be slow or away.
    for (const provider of models) void list(provider).catch(() => undefined);

    const faultsOf = (written: Readonly<Record<string, unknown>>): ports.NodeFault[] => {
      if (models.length === 0) return [{ path: [], message: NO_PROVIDERS }];
      const { provider: id, model, output } = written;
      const found = findProvider(models, isLiteral(id) ? id : undefined);
      const faults = [...promptFaults(written), ...schemaFaults(checks, output)];
      if (typeof found === "string" && (id === undefined || isLiteral(id))) faults.push({ path: ["provider"], message: found });
      const names = typeof found === "object" && (id === undefined || isLiteral(id)) ? known.get(found.id) : undefined;
      if (names && isLiteral(model) && !names.includes(model))
        faults.push({ path: ["model"], message: unknownModel(model, found as ports.ModelProvider) });
      return faults;
    };

    return {
      type: "model",
      input: modelInput,
      keys: { output: "verbatim" },
      repeatable: true,
      check: faultsOf,
      async run({ input, signal }) {
        signal.throwIfAborted();
        const provider = findProvider(models, input.provider);
        if (typeof provider === "string") throw failed("model_unknown_provider", provider);
        const [fault] = promptFaults({ ...input });
        if (fault) throw failed("model_request_invalid", fault.message);
        const [schemaFault] = schemaFaults(checks, input.output);
        if (schemaFault) throw failed("model_request_invalid", schemaFault.message);
        const work = {
          provider,
          model: await chooseModel(provider, input.model, list, signal),
          prompt: toModelPrompt(input),
          maxOutputTokens: input.maxTokens,
          temperature: input.temperature,
        };
        if (!input.output) return askForText(work, signal);
        return askForOutput(work, input.output, checks.of(input.output), signal);
      },
    };
  },
});

async function chooseModel(
  provider: ports.ModelProvider,
  name: string | undefined,
  list: (provider: ports.ModelProvider, signal: AbortSignal) => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<string> {
  const names = await list(provider, signal).catch((error: Error) => {
    signal.throwIfAborted();
    // A provider that cannot tell its models now may still serve the one that is named.
    if (name !== undefined) return [name];
    throw toNodeFailed(error);
  });
  const chosen = name ?? names[0];
  if (chosen === undefined) throw failed("model_unknown", `Provider "${provider.id}" serves no models`);
  if (!names.includes(chosen)) throw failed("model_unknown", unknownModel(chosen, provider));
  return chosen;
}

/** The provider, or why there is none. */
function findProvider(models: readonly ports.ModelProvider[], id: string | undefined): ports.ModelProvider | string {
  if (models.length === 0) return NO_PROVIDERS;
  const ids = models.map((provider) => provider.id).join(", ");
  if (id === undefined) return models.length === 1 ? models[0]! : `provider must name one of ${ids}`;
  return models.find((provider) => provider.id === id) ?? `There is no provider "${id}": provider must name one of ${ids}`;
}

function schemaFaults(checks: OutputChecks, output: unknown): ports.NodeFault[] {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return [];
  try {
    checks.of(output as Readonly<Record<string, unknown>>);
    return [];
  } catch (error) {
    return [{ path: ["output"], message: `output is no JSON Schema: ${(error as Error).message}` }];
  }
}

function unknownModel(model: string, { id }: ports.ModelProvider): string {
  return `Provider "${id}" serves no model "${model}"`;
}

function isLiteral(value: unknown): value is string {
  return typeof value === "string" && !value.includes("${{");
}

function failed(code: string, message: string): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable: false });
}
