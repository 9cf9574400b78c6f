import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { testing } from "@portico/presets/testing";
import { pluginConformance } from "./plugin.ts";

pluginConformance("safe tokens", () => safeTokenManagement({}), {
  extends: testing({}),
  credentials: { owner: { "x-agent-service-token": "owner-token" } },
  params: { tokenId: "tok_1" },
});
