import { definePreset } from "@portico/core";
import { clusterAgents, clusterWorkflows } from "./documents.ts";
import { clusterProblems } from "./problems.ts";
import { clusterStore } from "./store.ts";
import { platform } from "../platform/platform.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { publicAddresses } from "./public-addresses.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type ClusterConfig, clusterSchema } from "./config.ts";

/**
 * One of several processes, on any number of machines, that serve one instance and share its work: on PostgreSQL, Redis and S3. Surfaces
 * `proxy`, `workflow` and `agent`. Throws TypeError with a line per problem if the settings lack what the processes share.
 */
export const cluster = definePreset((options: PlatformOptions) => {
  const problems = clusterProblems(options.settings);
  if (problems.length > 0) throw new TypeError(problems.join("\n"));
  const { settings } = options;
  return {
    name: "cluster",
    ...platform(options, {
      store: clusterStore(settings, undefined, options.rotating),
      agents: clusterAgents(settings),
      workflows: clusterWorkflows(settings),
      addresses: publicAddresses(settings, options.listeners ?? (() => ({}))),
    }),
  };
});
