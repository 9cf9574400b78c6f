import { ports } from "@portico/core";
import type { HttpProviderOptions, ModelSettings } from "../http-options.ts";
import { KNOWN_MODELS } from "./known-models.ts";
import { knownRules } from "./known-vendors.ts";

/** Names whose facts are remembered: a provider that lists its own models can have any number. */
const MOST_NAMES = 1_000;

/** What a provider knows of its models: by its settings, else by what the vendor and the model are known to take, else nothing. */
export interface FactsOfModels {
  of(model: string): ports.ModelFacts;
  /** The settings of a model, by its id or an alias. */
  settingsOf(model: string): ModelSettings | undefined;
  /** Whether a model has another name upstream, or parameters. */
  readonly setsParameters: boolean;
}

/** The facts of the models of one provider. */
export function createModelFacts(
  protocol: ports.ModelProtocol,
  { models, ...provider }: Pick<HttpProviderOptions, "baseUrl" | "type" | "dialect" | "models">,
): FactsOfModels {
  const settings = new Map<string, ModelSettings>();
  for (const model of models === "discover" ? [] : models)
    if (typeof model !== "string") for (const name of [model.id, ...(model.aliases ?? [])]) settings.set(name, model);
  const vendor = knownRules(provider);
  const isById = vendor.some(({ modelBy }) => modelBy === "id");
  const rulesOf = (model: string) => KNOWN_MODELS.flatMap(({ isOne, rules }) => (isOne(model) ? rules : []));
  const known = new Map<string, ports.ModelFacts>();

  const read = (name: string): ports.ModelFacts => {
    const model = settings.get(name);
    const sent = model?.upstream ?? model?.id ?? name;
    const ofSent = rulesOf(sent);
    // The name of a deployment may be that of its model.
    const rules = [...vendor, ...(isById && model && ofSent.length === 0 ? rulesOf(model.id) : ofSent)];
    const images = model?.images ?? rules.find((rule) => rule.images === false)?.images;
    return {
      ...(sent !== name && { upstream: sent }),
      ...(protocol === "messages"
        ? {
            messages: dialectOf(
              ports.PUBLISHED_MESSAGES_DIALECT,
              rules.map((rule) => rule.messages),
              provider.dialect,
              model?.dialect,
            ),
          }
        : {
            chat: dialectOf(
              ports.PUBLISHED_CHAT_DIALECT,
              rules.map((rule) => rule.chat),
              provider.dialect,
              model?.dialect,
            ),
          }),
      ...(images !== undefined && { images }),
      ...(model?.parameters && { parameters: model.parameters }),
    };
  };
  return {
    of(name) {
      const found = known.get(name) ?? read(name);
      if (known.size < MOST_NAMES) known.set(name, found);
      return found;
    },
    settingsOf: (name) => settings.get(name),
    setsParameters: [...settings].some(
      ([name, { id, upstream, parameters }]) => (upstream ?? id) !== name || parameters !== undefined,
    ),
  };
}

type Settings = HttpProviderOptions["dialect"];

/** What is published, changed by what is known, changed by what is set. */
function dialectOf<D extends object>(published: D, known: readonly (Partial<D> | undefined)[], ...set: readonly Settings[]): D {
  const settings = set.map((each) => Object.fromEntries(Object.entries(each ?? {}).filter(([, value]) => value !== undefined)));
  return Object.assign({}, published, ...known, ...settings) as D;
}
