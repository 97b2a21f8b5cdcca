// For mocha, beside the SDK's own tests: before the one that starts a stopped job, it waits until the job has stopped. The tests ask for the
// start as soon as the stop is accepted, and a job that is still stopping is not started (409).
'use strict'
const { OpenPAIClient } = require(`${process.cwd()}/lib/src/api/v2`)
const { TestCluster } = require(`${process.cwd()}/lib/tests/common/testCluster`)

const PAUSE_MS = 20

exports.mochaHooks = {
  async beforeEach() {
    if (!this.currentTest.title.endsWith('to START')) {
      return
    }
    const client = new OpenPAIClient(TestCluster.cluster)
    // until mocha's own limit for a test
    while ((await client.job.listJobs({ username: TestCluster.cluster.username, state: 'STOPPING' })).length > 0) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  },
}
