/** The configuration of preset `agent`: all keys of a platform, so that one file serves every preset. */
export { type PlatformConfig as AgentConfig, platformSchema as agentSchema } from "../settings/platform.ts";
