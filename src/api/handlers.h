/* handlers.h — the functions behind the paths, by file. Each is `int (struct call *)`. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H
#include "api/call.h"

/* audit.c */
int handle_audit_list(struct call *call);

/* quota.c */
int handle_user_quota(struct call *call);
int handle_user_quota_set(struct call *call);
int handle_group_quota(struct call *call);
int handle_group_quota_set(struct call *call);

/* template.c */
int handle_template_list(struct call *call);
int handle_template(struct call *call);
int handle_template_create(struct call *call);
int handle_template_update(struct call *call);
int handle_template_remove(struct call *call);
int handle_template_review(struct call *call);
int handle_template_use(struct call *call);
int handle_template_star(struct call *call);
int handle_template_unstar(struct call *call);
int handle_template_tags(struct call *call);
int handle_template_categories(struct call *call);
int handle_tags_of_templates(struct call *call);
int handle_categories_of_templates(struct call *call);

/* request.c */
int handle_request_list(struct call *call);
int handle_request(struct call *call);
int handle_request_create(struct call *call);
int handle_request_status(struct call *call);
/* sign_up.c */
int handle_sign_up(struct call *call);

/* template_version.c */
int handle_template_versions(struct call *call);
int handle_template_version(struct call *call);
int handle_template_restore(struct call *call);
int handle_template_official(struct call *call);

/* login.c */
int handle_login(struct call *call);
int handle_logout(struct call *call);
int handle_authn_info(struct call *call);
int handle_token_list(struct call *call);
int handle_token_application(struct call *call);
int handle_token_remove(struct call *call);
int handle_token_check(struct call *call);

/* job_list.c */
int handle_job_list(struct call *call);
int handle_job_list_v1(struct call *call);

/* job_read.c */
int handle_job_detail(struct call *call);
int handle_job_detail_v1(struct call *call);
int handle_job_config(struct call *call);
int handle_job_config_v1(struct call *call);
int handle_job_attempt_list(struct call *call);
int handle_job_attempt(struct call *call);
int handle_job_attempt_health(struct call *call);
int handle_task_attempts(struct call *call);

/* task_list.c */
int handle_task_list(struct call *call);
int handle_task_values(struct call *call);

/* job_ssh.c */
int handle_job_ssh(struct call *call);
int handle_job_ssh_v1(struct call *call);
int handle_job_ssh_key(struct call *call);

/* job_write.c */
int handle_job_submit(struct call *call);
int handle_job_submit_v1(struct call *call);
int handle_job_put(struct call *call);
int handle_job_put_v1(struct call *call);
int handle_job_execution(struct call *call);
int handle_job_execution_v1(struct call *call);
int handle_job_delete(struct call *call);
int handle_job_delete_v1(struct call *call);
int handle_job_release(struct call *call);
int handle_job_scale(struct call *call);
int handle_tag_add(struct call *call);
int handle_tag_remove(struct call *call);
/* May a job have this tag, or (CHANGE_TAG_REMOVE) have had it? `field` is its name in the body. */
int job_tag_check(struct call *call, enum store_change_kind kind, const char *field,
                  struct text tag);

/* job_bulk.c */
int handle_job_bulk(struct call *call);
/* job_list.c: the query's filter, order, offset and limit. */
int job_filter_parse(struct call *call, struct job_filter *filter);
/* `state` of the query as bits 1 << enum public_state; none when it is absent. */
int call_states(struct call *call, uint32_t *states);

/* log.c: whole, tail and follow */
int handle_log_list(struct call *call);
int handle_log_read(struct call *call);
int handle_tail_log(struct call *call);
int handle_log_follow(struct call *call);
/* The stream of this name. NoTaskLogError. */
int log_stream_parse(struct call *call, struct text name, enum log_stream *stream);
/* log_search.c */
int handle_log_search(struct call *call);
int handle_exec_open(struct call *call);
int handle_web_port_open(struct call *call);
int handle_exec_attach(struct call *call);
int handle_exec_end(struct call *call);
int handle_exec_link(struct call *call);

/* story.c */
int handle_event_list(struct call *call);

/* use.c */
int handle_job_use(struct call *call);
int handle_node_use(struct call *call);

/* barrier.c */
int handle_barrier(struct call *call);

/* oidc.c */
int handle_oidc_login(struct call *call);
int handle_oidc_return(struct call *call);
int handle_oidc_return_form(struct call *call);
int handle_oidc_token(struct call *call);
int handle_oidc_device(struct call *call);
int handle_oidc_logout(struct call *call);

/* cluster.c */
int handle_node_list(struct call *call);
int handle_node_pardon(struct call *call);
int handle_node_cordon(struct call *call);
int handle_node_drain(struct call *call);
int handle_node_uncordon(struct call *call);

/* virtual_cluster.c */
int handle_vc_list(struct call *call);
int handle_vc(struct call *call);
int handle_vc_change(struct call *call);
int handle_sku_types(struct call *call);

/* Does a virtual cluster of this name exist? And the names of all, in the call's arena. */
int handle_vc_status(struct call *call);
bool vc_exists(const struct service_snapshot *snapshot, struct text name);
struct store_names vc_names(struct call *call, const struct service_snapshot *snapshot);

/* storage.c */
int handle_storage_list(struct call *call);
int handle_storage(struct call *call);
int handle_storage_config_list(struct call *call);
int handle_storage_config(struct call *call);
int handle_storage_server_list(struct call *call);
int handle_storage_server(struct call *call);
/* server_log.c */
int handle_server_log(struct call *call);
/* storage_admin.c */
int handle_storage_health(struct call *call);
/* files.c, download.c, upload.c */
int handle_file_list(struct call *call);
int handle_file_remove(struct call *call);
int handle_file_rename(struct call *call);
int handle_folder_make(struct call *call);
int handle_file_read(struct call *call);
int handle_file_link(struct call *call);
int handle_file_linked(struct call *call);
int handle_upload_begin(struct call *call);
int handle_upload(struct call *call);
int handle_upload_part(struct call *call);
int handle_upload_place(struct call *call);
int handle_upload_end(struct call *call);

/* alert.c */
int handle_alert_list(struct call *call);
int handle_plugin_list(struct call *call);
int handle_plugin_frame(struct call *call); /* a page of the portal */
int handle_exit_specs(struct call *call);
int handle_settings(struct call *call);

/* kubernetes.c */
int handle_kubernetes_nodes(struct call *call);
int handle_kubernetes_node(struct call *call);
int handle_kubernetes_pods(struct call *call);
int handle_kubernetes_pod(struct call *call);

/* changes.c */
int handle_changes(struct call *call);

/* user_v1.c */
int handle_user_list_v1(struct call *call);
int handle_user_put_v1(struct call *call);
int handle_user_remove_v1(struct call *call);
int handle_user_clusters_v1(struct call *call);
int handle_user_pat_v1(struct call *call);

/* user.c */
int handle_user_list(struct call *call);
int handle_user(struct call *call);
int handle_user_create(struct call *call);
int handle_user_remove(struct call *call);
int handle_user_update(struct call *call);
int handle_user_update_self(struct call *call);
int handle_user_extension(struct call *call);
int handle_user_email(struct call *call);
int handle_user_password(struct call *call);
int handle_user_clusters(struct call *call);
int handle_user_admin(struct call *call);
int handle_user_groups(struct call *call);
int handle_member_add(struct call *call);
int handle_member_remove(struct call *call);

/* group.c */
int handle_group_list(struct call *call);
int handle_group(struct call *call);
int handle_group_members(struct call *call);
int handle_group_create(struct call *call);
int handle_group_remove(struct call *call);
int handle_group_update(struct call *call);
int handle_group_description(struct call *call);
int handle_group_external_name(struct call *call);
int handle_group_extension(struct call *call);
int handle_group_extension_key(struct call *call);

/* inspect.c */
int handle_inspect_paths(struct call *call);
int handle_inspect_groups(struct call *call);
int handle_inspect_group(struct call *call);
int handle_inspect_cluster(struct call *call);
int handle_inspect_physical(struct call *call);
int handle_inspect_virtual(struct call *call);
int handle_inspect_virtual_one(struct call *call);

/* health.c */
int handle_root_v1(struct call *call);
int handle_root_v2(struct call *call);
int handle_info(struct call *call);
int handle_healthz(struct call *call);
int handle_livez(struct call *call);
int handle_readyz(struct call *call);
int handle_metrics(struct call *call);

/* Of v1's paths: "/jobs/:job" and "/user/:user/jobs/:job" are told apart by the number of
 * parameters that the route has. */
int call_job_v1(struct call *call, struct store_job *job);

#endif
