import { defineWorkflowNode, type KnownParts, optional, ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { countedCalls } from "../models/call/counted-calls.ts";
import { askForOutput, askForText, toNodeFailed } from "./model/ask-model.ts";
import { type ModelInput, modelInput, promptFaults, toModelRequest } from "./model/model-input.ts";

const NO_PROVIDERS = "No model providers are configured in this instance: nodes of type model cannot run";

/** Nodes that call a model: `{ text, usage }`, or the value that the JSON Schema `output` describes. */
export const modelNode = defineWorkflowNode({
  name: "workflow-nodes/model",
  needs: { clock: ports.clock, models: ports.models, telemetry: ports.telemetry, usage: optional(ports.usage) },
  rules(_options: void, known): ports.NodeRules<ModelInput> {
    return {
      type: "model",
      input: modelInput,
      keys: { output: "verbatim" },
      repeatable: true,
      check: (written) => faultsOf(written, known),
    };
  },
  open({ clock, models: all, telemetry, usage }, _options, scope) {
    const models = all.filter(({ servesAgents }) => !servesAgents);
    const checks = new SchemaChecks(clock);
    scope.onClose(() => checks.close());
    /** The last known names: definitions are checked without waiting. */
    const known = new Map<string, readonly string[]>();
    const list = async (provider: ports.ModelProvider, signal?: AbortSignal): Promise<readonly string[]> => {
      const names = await provider.listModels(signal);
      known.set(provider.id, names);
      return names;
    };
    // In the background: providers may be slow to list their models, or unreachable.
    for (const provider of models) void list(provider).catch(() => undefined);
    const providers = models.map(({ id }) => id);

    return {
      known: { providers, models: (provider) => known.get(provider) },
      async run({ input, step, signal, used }: ports.NodeWork<ModelInput>) {
        signal.throwIfAborted();
        const id = chooseProvider(providers, input.provider);
        if (typeof id !== "string") throw failed("model_unknown_provider", id.fault);
        const provider = models.find((each) => each.id === id)!;
        const [fault] = promptFaults({ ...input });
        if (fault) throw failed("model_request_invalid", fault.message);
        const found = input.output && (await checks.inspect(input.output, { signal }));
        if (found && "unusable" in found)
          throw failed("model_request_invalid", `output is not a valid JSON Schema: ${found.unusable}`);
        const work = {
          telemetry: {
            modelCall(call: ports.MeasuredModelCall) {
              telemetry.modelCall(call);
              used?.(call);
            },
            traceparent: () => telemetry.traceparent(),
          },
          counted: countedCalls(usage, { source: "workflow", workflowId: step.workflowId, userId: step.userId }),
          provider,
          model: await chooseModel(provider, input.model, list, signal),
          request: toModelRequest(input),
        };
        if (!input.output) return askForText(work, signal);
        return askForOutput(work, input.output, checks, signal);
      },
    };
  },
});

function faultsOf(written: Readonly<Record<string, unknown>>, { providers, models }: KnownParts): ports.NodeFault[] {
  if (providers.length === 0) return [{ path: [], message: NO_PROVIDERS }];
  const { provider: id, model } = written;
  const faults = promptFaults(written);
  // The result of a template is not known yet.
  if (id !== undefined && !isLiteral(id)) return faults;
  const provider = chooseProvider(providers, id);
  if (typeof provider !== "string") return [...faults, { path: ["provider"], message: provider.fault }];
  const names = models(provider);
  if (names && isLiteral(model) && !names.includes(model))
    faults.push({ path: ["model"], message: unknownModel(model, provider) });
  return faults;
}

async function chooseModel(
  provider: ports.ModelProvider,
  name: string | undefined,
  list: (provider: ports.ModelProvider, signal: AbortSignal) => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<string> {
  const names = await list(provider, signal).catch((error: Error) => {
    signal.throwIfAborted();
    // A provider that cannot list its models now may still serve the named model.
    if (name !== undefined) return [name];
    throw toNodeFailed(error);
  });
  const chosen = name ?? names[0];
  if (chosen === undefined) throw failed("model_unknown", `Provider "${provider.id}" serves no models`);
  if (!names.includes(chosen)) throw failed("model_unknown", unknownModel(chosen, provider.id));
  return chosen;
}

/** The ID of the provider to use, or why none can be used. */
function chooseProvider(providers: readonly string[], id: string | undefined): string | { readonly fault: string } {
  const [only] = providers;
  if (only === undefined) return { fault: NO_PROVIDERS };
  const ids = providers.join(", ");
  if (id === undefined) return providers.length === 1 ? only : { fault: `provider must name one of ${ids}` };
  return providers.includes(id) ? id : { fault: `There is no provider "${id}": provider must name one of ${ids}` };
}

function unknownModel(model: string, provider: string): string {
  return `Provider "${provider}" serves no model "${model}"`;
}

function isLiteral(value: unknown): value is string {
  return typeof value === "string" && !value.includes("${{");
}

function failed(code: string, message: string): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable: false });
}
