/** The configuration of preset `cluster`: all keys of a platform, so that one file serves every preset. */
export { type PlatformConfig as ClusterConfig, platformSchema as clusterSchema } from "../settings/platform.ts";
