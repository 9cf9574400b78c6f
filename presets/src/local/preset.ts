import { definePreset } from "@portico/core";
import { agentService } from "../platform/agent-service.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { proxy } from "../proxy/preset.ts";

export { chooseProviders } from "../platform/provider-choice.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy` and `agent`. */
export const local = definePreset((options: PlatformOptions) => ({
  name: "local",
  extends: proxy(options),
  ...agentService(options),
}));
