// Every method of OpenPAI's JavaScript SDK against a running server: sdk.js PACKAGE ADDRESS PASSWORD
// Prints one JSON object a line: {name, operation, ok, value | why}.
"use strict";
const http = require("http");
const [, , packagePath, address, password] = process.argv;
const v2 = require(`${packagePath}/lib/src/api/v2`);
const v1 = require(`${packagePath}/lib/src/api/v1`);
const cluster = { rest_server_uri: address, username: "admin", password, https: false };

async function call(name, method) {
  try {
    const value = await method();
    console.log(JSON.stringify({ name, operation: name.split(".").pop(), ok: true, value }));
    return value;
  } catch (error) {
    const why = error && (error.message || error.error || JSON.stringify(error));
    console.log(JSON.stringify({ name, ok: false, why: String(why).slice(0, 300) }));
    return undefined;
  }
}

function jobOf(name) {
  return {
    protocolVersion: 2, name, type: "job",
    prerequisites: [{ name: "image", type: "dockerimage", uri: "debian:12" }],
    taskRoles: {
      worker: {
        instances: 1, dockerImage: "image", commands: ["sleep 1"],
        resourcePerInstance: { cpu: 1, memoryMB: 64, gpu: 0 },
      },
    },
  };
}

async function accounts(client) {
  await call("v2.user.createUser", () => client.user.createUser({ username: "sdk_user", password: "sdk-password" }));
  await call("v2.user.getAllUser", () => client.user.getAllUser());
  await call("v2.user.getUser", () => client.user.getUser("sdk_user"));
  await call("v2.user.updateUser", () => client.user.updateUser({ username: "sdk_user", email: "a@b.c" }));
  await call("v2.user.updateUserSelf", () => client.user.updateUserSelf({ username: "admin", email: "a@b.c" }));
  await call("v2.group.createGroup", () => client.group.createGroup({ groupname: "sdkgroup", description: "" }));
  await call("v2.group.getAllGroup", () => client.group.getAllGroup());
  await call("v2.group.getGroup", () => client.group.getGroup("sdkgroup"));
  await call("v2.group.updateGroup", () => client.group.updateGroup({ data: { groupname: "sdkgroup", description: "x" }, patch: true }));
  await call("v2.user.updateUserGroup", () => client.user.updateUserGroup("sdk_user", "sdkgroup"));
  await call("v2.group.getGroupMembers", () => client.group.getGroupMembers("sdkgroup"));
  await call("v2.user.deleteUserGroup", () => client.user.deleteUserGroup("sdk_user", "sdkgroup"));
  await call("v2.user.updateUserGrouplist", () => client.user.updateUserGrouplist("sdk_user", ["default"]));
  await call("v2.user.deleteUser", () => client.user.deleteUser("sdk_user"));
  await call("v2.group.deleteGroup", () => client.group.deleteGroup("sdkgroup"));
  await call("v2.token.getTokens", () => client.token.getTokens());
  const made = await call("v2.token.createApplicationToken", () => client.token.createApplicationToken());
  await call("v2.token.deleteToken", () => client.token.deleteToken(made.token));
}

async function clusterWide(client) {
  await call("v2.api.getClusterInfo", () => client.api.getClusterInfo());
  await call("v2.virtualCluster.listVirtualClusters", () => client.virtualCluster.listVirtualClusters());
  await call("v2.virtualCluster.getVirtualCluster", () => client.virtualCluster.getVirtualCluster("default"));
  await call("v2.virtualCluster.getVirtualClusterSkuTypes", () => client.virtualCluster.getVirtualClusterSkuTypes("default"));
  await call("v2.storage.getStorages", () => client.storage.getStorages());
  await call("v2.storage.getStorage", () => client.storage.getStorage("corpus"));
  await call("v2.kubernetes.getK8sNodes", () => client.kubernetes.getK8sNodes());
  await call("v2.kubernetes.getK8sPods", () => client.kubernetes.getK8sPods({ namespace: "default" }));
}

async function jobs(client) {
  const job = ["admin", "sdk_job"];
  await call("v2.job.createJob", () => client.job.createJob(jobOf("sdk_job")));
  await call("v2.job.createRunningJob", () => client.job.createRunningJob(jobOf("sdk_running")));
  await call("v2.job.listJobs", () => client.job.listJobs({ username: "admin", withTotalCount: true }));
  await call("v2.job.getJob", () => client.job.getJob(...job));
  await call("v2.job.getJob", () => client.job.getJob(...job, 0));
  await call("v2.job.getJobConfig", () => client.job.getJobConfig(...job));
  await call("v2.job.addTag", () => client.job.addTag(...job, "blue"));
  await call("v2.job.deleteTag", () => client.job.deleteTag(...job, "blue"));
  await call("v2.job.getTask", () => client.job.getTask(...job, 0, "worker", 0));
  const logs = await call("v2.job.getTaskLogs", () => client.job.getTaskLogs(...job, 0, "worker", 0, 0, true));
  await call("v2.job.listEvents", () => client.job.listEvents(...job, { type: "Normal" }));
  await call("v2.jobHistory.getJobAttemptsHealthz", () => client.jobHistory.getJobAttemptsHealthz(...job));
  await call("v2.jobHistory.getJobAttempts", () => client.jobHistory.getJobAttempts(...job));
  await call("v2.jobHistory.getJobAttempt", () => client.jobHistory.getJobAttempt(...job, 0));
  await call("v2.job.updateJobExecutionType", () => client.job.updateJobExecutionType(...job, "STOP"));
  return logs;
}

// Until the job is final: its events end then.
function untilFinal(job, token) {
  const options = { path: `/api/v2/jobs/${job}/events?follow=true`, headers: { Authorization: `Bearer ${token}` } };
  [options.host, options.port] = address.split(":");
  return new Promise((resolve, reject) => {
    http.get(options, (reply) => reply.resume().on("end", resolve)).on("error", reject);
  });
}

async function early() {
  const client = new v1.OpenPAIClient(cluster);
  const file = {
    jobName: "sdk_early", image: "debian:12",
    taskRoles: [{ name: "worker", taskNumber: 1, cpuNumber: 1, memoryMB: 128, command: "true" }],
  };
  const job = ["admin", "sdk_early"];
  await call("v1.login", () => client.login());
  await call("v1.config.clusterInfo", () => client.config.clusterInfo());
  await call("v1.authn.info", () => client.authn.info());
  await call("v1.authn.oidcLogin", () => client.authn.oidcLogin());
  await call("v1.authn.oidcLogout", () => client.authn.oidcLogout());
  await call("v1.authn.getTokens", () => client.authn.getTokens());
  const made = await call("v1.authn.createApplicationToken", () => client.authn.createApplicationToken());
  await call("v1.authn.deleteToken", () => client.authn.deleteToken(made.token));
  await call("v1.job.submit", () => client.job.submit("admin", file));
  await call("v1.job.list", () => client.job.list());
  await call("v1.job.get", () => client.job.get(...job));
  await call("v1.job.getFrameworkInfo", () => client.job.getFrameworkInfo(...job));
  await call("v1.job.getConfig", () => client.job.getConfig(...job));
  await call("v1.job.getSshInfo", () => client.job.getSshInfo(...job));
  await call("v1.job.execute", () => client.job.execute(...job, "STOP"));
  await untilFinal("admin~sdk_early", await client.token());
  await call("v1.job.delete", () => client.job.delete(...job));
}

async function main() {
  const login = new v2.OpenPAIClient(cluster);
  const info = await call("v2.authn.basicLogin", () => login.authn.basicLogin("admin", password));
  const client = new v2.OpenPAIClient({ ...cluster, token: info.token });
  await clusterWide(client);
  await accounts(client);
  await jobs(client);
  await call("v2.authn.oidcLogin", () => client.authn.oidcLogin());
  await call("v2.authn.oidcLogout", () => client.authn.oidcLogout());
  await early();
  await call("v2.authn.basicLogout", () => client.authn.basicLogout());
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
