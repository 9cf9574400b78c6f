import type { Instance } from "../../../api/instance.ts";

/** Values with which a new agent begins. */
export interface AgentDraft {
  readonly provider: string;
  readonly model: string;
  readonly instructions: string;
}

/** In memory: the text of a draft must not be in an address. */
const drafts = new WeakMap<Instance, { readonly id: string; readonly draft: AgentDraft }>();

/** Keeps a draft for the editor of a new agent. */
export function keepDraft(instance: Instance, id: string, draft: AgentDraft): void {
  drafts.set(instance, { id, draft });
}

/** The draft of a new agent, once. */
export function takeDraft(instance: Instance, id: string): AgentDraft | undefined {
  const kept = drafts.get(instance);
  if (kept?.id !== id) return undefined;
  drafts.delete(instance);
  return kept.draft;
}
