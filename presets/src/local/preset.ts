import { definePreset } from "@portico/core";
import { workflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { agentsOf } from "../platform/agents-of.ts";
import { definitionsAt } from "../settings/documents-place.ts";
import { instance } from "../platform/instance.ts";
import { platform } from "../platform/platform.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { noteStores } from "../platform/stores-file.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy`, `workflow` and `agent`. */
export const local = definePreset((options: PlatformOptions) => {
  const { agent, workflow } = options.settings;
  return {
    name: "local",
    onOpen: noteStores(options.settings.dataDir),
    ...platform(options, {
      store: instance(options),
      agents: agentsOf(agent),
      workflows: workflowDocuments(definitionsAt(workflow)),
    }),
  };
});
