#include "cli/openpai_rules.h"

#define TAKEN(path, target)                                                                        \
    {                                                                                              \
        path, NOTE_TAKEN, target, NULL, SPECIAL_NONE, false                                        \
    }
#define NUMBER(path, target)                                                                       \
    {                                                                                              \
        path, NOTE_TAKEN, target, NULL, SPECIAL_NONE, true                                         \
    }
#define TO_DO(path, text)                                                                          \
    {                                                                                              \
        path, NOTE_TO_DO, NULL, text, SPECIAL_NONE, false                                          \
    }
#define GONE(path, text)                                                                           \
    {                                                                                              \
        path, NOTE_GONE, NULL, text, SPECIAL_NONE, false                                           \
    }
#define SPECIAL(path, what)                                                                        \
    {                                                                                              \
        path, NOTE_TAKEN, NULL, NULL, what, false                                                  \
    }

/* A row for a section stands for all below it that has no row of its own. */
const struct openpai_rule OPENPAI_SERVICES[] = {
    GONE("cluster.common.cluster-id", "nothing needs the name of a cluster"),
    GONE("cluster.common.job-history", "the history of jobs is kept always (retention.jobDays)"),
    GONE("cluster.common.k8s-rbac", "the rights that Skep needs stand in its documentation"),
    GONE("cluster.common.data-path", "Skep keeps what it has in dataDirectory"),
    GONE("cluster.common", "Skep has nothing that this would set"),
    GONE("cluster.docker-registry", "the images of OpenPAI's own services are not needed"),
    TAKEN("rest-server.default-pai-admin-username", "adminName"),
    TO_DO("rest-server.default-pai-admin-password",
          "the first start of skepd prints a random password: change it with skep user set"),
    GONE("rest-server.jwt-secret", "tokens of OpenPAI are not valid here: everybody logs in again"),
    GONE("rest-server.jwt-expire-time", "Skep has a life of its own for tokens of a login"),
    NUMBER("rest-server.debugging-reservation-seconds", "scheduling.debugHoldSeconds"),
    NUMBER("rest-server.schedule-port-start", "scheduling.portFirst"),
    NUMBER("rest-server.schedule-port-end", "scheduling.portLast"),
    TO_DO("rest-server.rate-limit-api-per-min", "limits are quotas: see skep quota"),
    TO_DO("rest-server.rate-limit-list-job-per-min", "limits are quotas: see skep quota"),
    TO_DO("rest-server.rate-limit-submit-job-per-hour", "limits are quotas: see skep quota"),
    GONE("rest-server.enable-priority-class", "jobs of higher priority preempt always"),
    GONE("rest-server.github-owner", "there is no marketplace"),
    GONE("rest-server.github-repository", "there is no marketplace"),
    GONE("rest-server.github-path", "there is no marketplace"),
    GONE("rest-server.launcher-type", "Skep runs jobs itself"),
    GONE("rest-server.sql-max-connection", "Skep needs no limit of connections"),
    TO_DO("rest-server.server-port", "the API listens at api.listen, for clients and the portal"),
    SPECIAL("webportal.plugins", SPECIAL_PLUGINS),
    GONE("webportal", "skepd serves the portal itself, at api.listen"),
    SPECIAL("pylon.ssl", SPECIAL_TLS),
    TO_DO("pylon", "the API and the portal are at api.listen: put a reverse proxy before it "
                   "(api.proxies) where the old address must stay"),
    SPECIAL("authentication.OIDC", SPECIAL_OIDC),
    GONE("authentication.OIDC-type", "any provider of OpenID Connect will do"),
    GONE("authentication.AAD", "read together with authentication.OIDC"),
    SPECIAL("authentication.group-manager", SPECIAL_GROUPS),
    SPECIAL("hivedscheduler.config", SPECIAL_CELLS),
    GONE("hivedscheduler", "the scheduler is part of skepd"),
    SPECIAL("alert-manager.alert-handler.email-configs", SPECIAL_MAIL),
    SPECIAL("alert-manager.email-notification", SPECIAL_MAIL), /* of OpenPAI before 1.5 */
    SPECIAL("alert-manager.customized-receivers", SPECIAL_RECEIVERS),
    TO_DO("alert-manager.customized-routes",
          "every alert goes to notifications.alerts.mail, and to the webhooks with alerts: true, "
          "which sort them by their labels"),
    TO_DO("alert-manager.cluster-utilization",
          "skep use shows what users and jobs have used: let a timer mail it"),
    GONE("alert-manager.repeat-interval", "an alert is told once, and so is its end"),
    GONE("alert-manager.pai-bearer-token", "skepd needs no token to act for itself"),
    GONE("alert-manager.cert-expiration-checker",
         "the certificates of the cluster are the cluster's own matter"),
    GONE("alert-manager", "skepd tells of alerts itself: notifications.alerts"),
    TO_DO("storage-manager",
          "storages are claims of the cluster, or folders that the machines have "
          "mounted: name them in storages"),
    GONE("internal-storage", "SQLite needs no volume of its own; see retention.databaseMB"),
    GONE("postgresql", "SQLite is built in; another database is named by the key database"),
    GONE("database-controller", "the history is part of skepd"),
    GONE("log-manager", "logs are kept by skepd (engine.logKeepDays, engine.logKeepMB)"),
    GONE("cleaner", "skepd removes images and logs that nobody needs by itself"),
    GONE("prometheus", "skepd has /metrics for a Prometheus of yours, in which "
                       "customized-alerts belong, and needs none"),
    GONE("grafana", "the portal has charts"),
    GONE("node-exporter", "skepd measures the machines itself"),
    GONE("job-exporter", "skepd measures the tasks itself"),
    GONE("watchdog", "skepd watches its parts itself (/readyz)"),
    GONE("drivers", "GPU drivers are the machines' own matter"),
    GONE("docker-cache", "there is no cache of images but those on the machines"),
    GONE("marketplace-db", "there is no marketplace"),
    GONE("marketplace-restserver", "there is no marketplace"),
    GONE("marketplace-webportal", "there is no marketplace"),
    GONE("utilization-reporter", "skep use shows what jobs use"),
    {0},
};

const struct openpai_rule OPENPAI_CONFIG[] = {
    GONE("user", "Skep logs in to no machine"),
    GONE("password", "Skep logs in to no machine"),
    GONE("ssh_key_file_path", "Skep logs in to no machine"),
    GONE("branch_name", "names a version of OpenPAI"),
    GONE("docker_image_tag", "names a version of OpenPAI"),
    GONE("docker_registry_domain", "the images of OpenPAI's own services are not needed"),
    GONE("docker_registry_namespace", "the images of OpenPAI's own services are not needed"),
    GONE("docker_registry_username", "the images of OpenPAI's own services are not needed"),
    GONE("docker_registry_password", "the images of OpenPAI's own services are not needed"),
    GONE("enable_hived_scheduler", "taken into account: see scheduling.policy"),
    GONE("enable_docker_cache", "there is no cache of images but those on the machines"),
    GONE("enable_marketplace", "there is no marketplace"),
    TO_DO("openpai_docker_insecure_registries",
          "the container runtime of the nodes must know them"),
    TO_DO("openpai_docker_registry_mirrors", "the container runtime of the nodes must know them"),
    GONE("host_daemon_port_start", "ports of daemons are the cluster's matter"),
    GONE("host_daemon_port_end", "ports of daemons are the cluster's matter"),
    {0},
};
