import type { PlayedModel } from "@portico/presets/platform/agent-tests/run-agent-case";
import { chooseProviders, type ServedProvider } from "@portico/presets/platform/provider-choice";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";

/** Stands for the answers of the cases. */
const SCRIPTED = "scripted";
/** Maximum models of one evaluation. */
const MODELS = 20;

/** A model that `--models` names. */
export interface ChosenModel {
  /** As it was written. */
  readonly name: string;
  /** Undefined for the answers of the cases. */
  readonly played: PlayedModel | undefined;
}

/**
 * The models of a list with commas: `PROVIDER/MODEL`, a model that one provider lists, or `scripted`. Throws CommandFailed (64) for a model that
 * no provider of the configuration has.
 */
export async function chooseModels(settings: PlatformSettings, written: string): Promise<readonly ChosenModel[]> {
  const names = [...new Set(written.split(",").map((name) => name.trim()))];
  if (names.some((name) => name === ""))
    throw new CommandFailed("Option --models must be names with commas between them", EXIT.usage);
  if (names.length > MODELS) throw new CommandFailed(`Option --models takes at most ${MODELS} models`, EXIT.usage);
  const providers = names.every((name) => name === SCRIPTED) ? [] : await chooseProviders(settings, { env: process.env });
  return names.map((name) => ({ name, played: name === SCRIPTED ? undefined : modelOf(name, providers) }));
}

/** The model of another option, which must be a real one. Throws CommandFailed (64). */
export async function chooseModel(settings: PlatformSettings, name: string): Promise<PlayedModel> {
  return modelOf(name, await chooseProviders(settings, { env: process.env }));
}

function modelOf(name: string, providers: readonly ServedProvider[]): PlayedModel {
  const slash = name.indexOf("/");
  const named = providers.find(({ id }) => id === name.slice(0, slash));
  if (slash > 0 && named) return { provider: named.id, model: name.slice(slash + 1), adapter: named.adapter };
  const listing = providers.filter(({ models }) => models !== "discover" && models.includes(name));
  const [provider] = listing;
  if (provider && listing.length === 1) return { provider: provider.id, model: name, adapter: provider.adapter };
  const known = providers.map(({ id }) => id).join(", ");
  const reason = provider ? "Several providers list" : "No provider lists";
  throw new CommandFailed(`${reason} the model "${name}": write PROVIDER/MODEL with one of the providers ${known}`, EXIT.usage);
}
